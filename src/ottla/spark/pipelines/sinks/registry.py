"""All kinds of sinks. A built-in kind is a module and a line here; that of another package is an entry point."""

from __future__ import annotations

from typing import Final

from ottla.spark.pipelines.plugins import Plugins
from ottla.spark.pipelines.sinks.sink import Sink

_HERE: Final = "ottla.spark.pipelines.sinks"
SINKS: Final = Plugins(
    "sink",
    Sink,
    group="ottla.pipeline_sinks",
    built_in={
        "parquet": f"{_HERE}.parquet:ParquetSink",
        "delta": f"{_HERE}.delta:DeltaSink",
        "iceberg": f"{_HERE}.iceberg:IcebergSink",
        "topic": f"{_HERE}.topic:TopicSink",
        "postgresql": f"{_HERE}.postgresql:PostgresqlSink",
        "sqlite": f"{_HERE}.sqlite:SqliteSink",
        "jdbc": f"{_HERE}.jdbc:JdbcSink",
        "console": f"{_HERE}.console:ConsoleSink",
    },
)
