"""The Kafka protocol without sockets: frames, headers, and messages declared once for all versions."""
