"""Tables of files that a pipeline writes: Parquet, Delta and Iceberg."""
