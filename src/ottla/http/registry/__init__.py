"""The schema registry over HTTP: its API, and its state in the `_schemas` topic."""
