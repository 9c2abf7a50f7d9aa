"""The Iceberg REST catalog: the tables of topics, for Spark, DuckDB, Trino, PyIceberg and others. Read-only."""
