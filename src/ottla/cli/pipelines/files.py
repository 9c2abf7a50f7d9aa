"""Options shared by the commands of `ottla pipeline`: file, broker, Spark."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.core.errors import ConfigError
from ottla.spark.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from ottla.cli.connecting import Reach
    from ottla.spark.pipelines.definition import Pipeline

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def with_file(command: Decorated) -> Decorated:
    """Give a command the argument FILE, as `file`."""
    return click.argument("file", type=click.Path(path_type=Path))(command)


def with_master(command: Decorated) -> Decorated:
    """Give a command `--master`, as `master`."""
    return click.option(
        "--master",
        default="local[*]",
        show_default=True,
        metavar="local[*]|spark://…|sc://…",
        help="Spark master: local[*], spark://…, or sc://… for Spark Connect.",
    )(command)


def load(file: Path, reach: Reach) -> Pipeline:
    """Load a pipeline; an explicitly named broker overrides the file's."""
    from ottla.spark.pipelines.loading import load_pipeline

    if not reach.is_chosen:
        return load_pipeline(file)
    return load_pipeline(file, broker=reach.servers, kafka=kafka_settings(reach))


def need_spark() -> None:
    """Raise a one-line error if a package is missing, before anything imports it."""
    if importlib.util.find_spec("pyspark") is None:
        raise SessionError("pyspark is not installed; run: pip install 'ottla[spark]'")


def started_spark(pipeline: Pipeline, master: str) -> SparkSession:
    """A quiet Spark session; prints its start-up time to standard error."""
    from ottla.spark.pipelines.sessions import pipeline_session, silence
    from ottla.spark.pipelines.stores.checking import check_stores

    check_stores(pipeline)
    click.echo(f"{pipeline.name}: starting Spark on {master}", err=True)
    begun = time.monotonic()
    spark = pipeline_session(pipeline, master)
    silence(spark, pipeline)
    took_s = time.monotonic() - begun
    count = len(pipeline.sinks)
    click.echo(f"{pipeline.name}: Spark {spark.version} started in {took_s:.1f} s; planning {count} sinks", err=True)
    return spark


def kafka_settings(reach: Reach) -> dict[str, str]:
    """Connection options under the names of Spark's Kafka connector."""
    security = reach.security()
    if security is None:
        return {}
    if reach.profile.key_file is not None:
        raise ConfigError("--key-file: put the key into the file of --cert-file; Spark takes both from one")
    settings = {
        "security.protocol": f"{'SASL_' if security.mechanism else ''}{'SSL' if security.tls else 'PLAINTEXT'}",
    }
    for name, file in (("truststore", security.ca_file), ("keystore", security.cert_file)):
        if file is not None:
            settings |= {f"ssl.{name}.location": str(Path(file).resolve()), f"ssl.{name}.type": "PEM"}
    if security.mechanism is not None:
        user, password = (_quoted(each or "") for each in (security.username, security.password))
        settings |= {
            "sasl.mechanism": security.mechanism,
            "sasl.jaas.config": f"login required username={user} password={password};",
        }
    return settings


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
