"""Topics as tables: the history from Iceberg tables in Spark's own readers, the rest from the broker."""
