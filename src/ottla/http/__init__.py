"""The HTTP server: REST, the web console, metrics, health. It translates requests to Kafka requests, and is stateless."""
