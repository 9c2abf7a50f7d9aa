"""The Spark that a pipeline runs in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.spark.session import listen, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipelines.definition import Pipeline

_SETTINGS: Final = {
    # Other readers than Spark do not know INT96.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # So that an upgrade is judged by all of a plan.
    "spark.sql.debug.maxToStringFields": "10000",
    "spark.sql.maxPlanStringLength": "10000000",
    # A micro-batch that is repeated must have the same tasks.
    "spark.sql.adaptive.enabled": "false",
}


def pipeline_session(pipeline: Pipeline, master: str) -> SparkSession:
    """A session of the pipeline's own, in the Spark there is or a new one: views and settings are nobody else's."""
    spark = session(pipeline.name, master=master, config=dict(pipeline.spark))
    if not master.startswith("sc://"):
        spark = spark.newSession()
        listen(spark)
    for name, value in (_SETTINGS | dict(pipeline.spark)).items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)
    return spark


def activate(spark: SparkSession) -> None:
    """Make it this thread's session: Spark looks for data sources in the one that is."""
    if hasattr(spark, "_jsparkSession"):
        spark.createDataFrame([], "nothing int")
