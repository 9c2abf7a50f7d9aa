"""The foundation of all endpoints: declarations, bodies, errors, connections, OpenAPI."""
