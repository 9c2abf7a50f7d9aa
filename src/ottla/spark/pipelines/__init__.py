"""Pipelines from topics through steps to tables, topics and databases, defined in a TOML file."""
