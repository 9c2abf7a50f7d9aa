"""Archives of topics as Parquet files: writing them, and reading them together with the live log."""
