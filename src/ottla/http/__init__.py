"""The HTTP server: REST, the web console, metrics, health. Stateless: it translates requests to Kafka requests."""
