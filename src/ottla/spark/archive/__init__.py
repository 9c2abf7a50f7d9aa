"""A topic's past as Parquet files: written here, and read together with the live log."""
