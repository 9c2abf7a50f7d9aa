"""Checks that Spark can use the address of its checkpoints, before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipelines.definition import Pipeline

_PACKAGES: Final = {
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:VERSION",
}


def check_checkpoint(spark: SparkSession, pipeline: Pipeline) -> None:
    """Raise if Hadoop has no file system for the address. Not checked with Spark Connect."""
    scheme, colon, _ = pipeline.checkpoint.partition("://")
    if not colon or not hasattr(spark, "_jsparkSession"):
        return
    from py4j.protocol import Py4JJavaError

    hadoop: Any = spark._jvm.org.apache.hadoop  # noqa: SLF001 - there is no other way to ask
    try:
        hadoop.fs.FileSystem.getFileSystemClass(scheme, spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
    except Py4JJavaError:
        raise ConfigError(missing_file_system(pipeline.checkpoint, str(hadoop.util.VersionInfo.getVersion()))) from None


def missing_file_system(checkpoint: str, hadoop: str) -> str:
    scheme = checkpoint.partition("://")[0]
    head = f"checkpoint: Spark has no file system for {checkpoint}"
    if scheme == "s3":
        return f"{head}; use s3a:// for S3, with the package {_PACKAGES['s3a'].format(hadoop=hadoop)}"
    if scheme not in _PACKAGES:
        return f"{head}; use a folder, or add the jars of its Hadoop file system ([spark] spark.jars)"
    package = _PACKAGES[scheme].format(hadoop=hadoop)
    return f'{head}; use a folder, or set "spark.jars.packages" = "{package}" under [spark]'
