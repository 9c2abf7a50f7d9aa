"""Pipelines: from topics through steps to tables, topics and databases, as one TOML file says it."""
