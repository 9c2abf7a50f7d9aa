"""The HTTP server: REST, the web console, metrics, health. It translates requests for the broker, and keeps no data."""
