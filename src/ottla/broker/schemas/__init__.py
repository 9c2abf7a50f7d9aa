"""Schemas in the broker: the registry's state in `_schemas`, and validation of records by their schema ids."""
