"""Where Spark discovers data sources: a top-level module named `pyspark_…` with a `DefaultSource`."""

from ottla.spark.source import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]
