"""What every endpoint is built on: declarations, bodies, errors, connections, OpenAPI."""
