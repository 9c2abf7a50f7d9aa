"""The Spark session of a pipeline."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.spark.environment.session import listen, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipelines.definition import Pipeline

_SETTINGS: Final = {
    # Readers other than Spark do not support INT96.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Upgrade checks need the whole plan.
    "spark.sql.debug.maxToStringFields": "10000",
    "spark.sql.maxPlanStringLength": "10000000",
    # A micro-batch that is repeated must have the same tasks.
    "spark.sql.adaptive.enabled": "false",
}
_JARS: Final = "spark.jars"
_LOG_LEVEL: Final = "spark.log.level"
_STACK_LOGGERS: Final = ("SQLQueryContextLogger", "py4j.clientserver")
"""They print the stack trace of every failure in the JVM."""


def pipeline_session(pipeline: Pipeline, master: str) -> SparkSession:
    """A separate session in the running Spark or a new one: views and settings are not shared."""
    spark = session(pipeline.name, master=master, config={**pipeline.spark, **_jars(pipeline)})
    if not master.startswith("sc://"):
        spark = spark.newSession()
        listen(spark)
    for name, value in (_SETTINGS | dict(pipeline.spark)).items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)
    return spark


def _jars(pipeline: Pipeline) -> dict[str, str]:
    """Database drivers, for a new Spark; a running one cannot be changed."""
    named = [*(each.jars for each in pipeline.tables.values()), *(each.jar_files for each in pipeline.sinks.values())]
    found = dict.fromkeys(jar for jars in named for jar in jars)
    return {_JARS: ",".join([*found, *filter(None, [pipeline.spark.get(_JARS, "")])])} if found else {}


def silence(spark: SparkSession, pipeline: Pipeline) -> None:
    """Disable the JVM's log by default: failures are reported in one line, with the stack trace in a file."""
    if hasattr(spark, "_jsparkSession") and _LOG_LEVEL not in pipeline.spark:
        spark.sparkContext.setLogLevel("OFF")
        for name in _STACK_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)


def activate(spark: SparkSession) -> None:
    """Make it the thread's session, in which Spark looks up data sources."""
    if hasattr(spark, "_jsparkSession"):
        spark.createDataFrame([], "nothing int")
