"""A Spark session on this machine or a cluster, with `format("ottla")` registered."""

from __future__ import annotations

import os
import re
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.spark.environment.class_data import java_options
from ottla.spark.environment.home import home_without_archive
from ottla.spark.environment.java import find_java
from ottla.spark.environment.shipping import archives
from ottla.spark.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

_CHECKPOINTS: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_MASTER: Final = re.compile(r"local(-cluster)?(\[.*\])?|yarn|(spark|sc|k8s)://.+")
_QUIET_LOGS: Final = Path(__file__).with_name("log4j2.properties")
_listening: Final[set[int]] = set()


def session(
    name: str = "ottla",
    *,
    master: str = "local[*]",
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Get or create the session. `master` is `local[*]`, `spark://…`, or `sc://…` for Spark Connect.

    `config` holds settings of Spark's own, and wins over ours. This package is shipped to the workers of a cluster.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise SessionError("pyspark is not installed; run: pip install 'ottla[spark]'") from None
    if not _MASTER.fullmatch(master):
        raise SessionError(f"{master!r} is not a Spark master; use e.g. local[*], spark://host:7077 or sc://host:15002")
    if master.startswith("sc://"):
        return _connected(SparkSession.builder.remote(master).getOrCreate())
    settings = {
        **_settings(),
        **(_local_settings() if master.startswith("local") else _cluster_settings()),
        **(config or {}),
    }
    if SparkSession.getActiveSession() is None:
        settings |= _java_settings(settings)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    is_local = master.startswith("local")
    try:
        with home_without_archive(settings, _package(), _cache()) if is_local else nullcontext():
            spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as failed:
        raise SessionError(f"Spark did not start on {master}: {str(failed).splitlines()[0]}") from failed
    listen(spark)
    return spark


def _settings() -> dict[str, str]:
    return {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
    }


def _local_settings() -> dict[str, str]:
    """Settings for one machine: no network, no web UI, few partitions, no process forked per checkpoint file."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    }
    if _has_class(_CHECKPOINTS):
        settings["spark.sql.streaming.checkpointFileManagerClass"] = _CHECKPOINTS
    return settings


def _cluster_settings() -> dict[str, str]:
    return {"spark.archives": ",".join(archives())}


def _connected(spark: SparkSession) -> SparkSession:
    """The server may not have us among its packages."""
    from ottla.spark.source import OttlaDataSource

    spark.addArtifacts(*archives(), archive=True)
    spark.dataSource.register(OttlaDataSource)
    return spark


def _java_settings(config: Mapping[str, str]) -> dict[str, str]:
    """Set JAVA_HOME and the JVM options."""
    import pyspark

    cache = _cache()
    java = find_java(os.environ, cache)
    os.environ["JAVA_HOME"] = str(java.home)
    given = config.get(_JAVA_OPTIONS)
    start = java_options(java, pyspark.__version__, cache) if given is None else [given]
    return {_JAVA_OPTIONS: " ".join([f"-Dlog4j2.configurationFile={_QUIET_LOGS.as_uri()}", *start])}


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla"


def _package() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def _has_class(name: str) -> bool:
    inside = name.replace(".", "/") + ".class"
    for jar in (_package() / "jars").glob("spark-sql_*.jar"):
        with zipfile.ZipFile(jar) as content:
            if inside in content.namelist():
                return True
    return False


def listen(spark: SparkSession) -> None:
    """Add the listener once per session, or it would be called twice."""
    from ottla.spark.reporting.listener import ProgressListener

    session_id = id(spark._jsparkSession)  # noqa: SLF001 - of the JVM's session, which Python's may share
    if session_id not in _listening:
        _listening.add(session_id)
        spark.streams.addListener(ProgressListener(spark))
