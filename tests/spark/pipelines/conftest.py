"""Pipelines in the tests' own Spark, each in a separate folder."""

import json
import os
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.object_stores import Bucket, moto_bucket

from ottla import Consumer, Producer
from ottla.core.pipeline_status import PipelineStatus
from ottla.spark.pipelines.definition import Pipeline
from ottla.spark.pipelines.loading import load_pipeline
from ottla.spark.pipelines.sinks.registry import SINKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Pipelines:
    """Shortcuts for pipeline tests."""

    def __init__(self, spark: "SparkSession", cluster: Cluster, folder: Path) -> None:
        self.spark = spark
        self.cluster = cluster
        self.folder = folder

    def load(self, text: str, name: str = "pipeline") -> Pipeline:
        file = self.folder / f"{name}.toml"
        file.write_text(f'broker = "{self.cluster.servers}"\n{textwrap.dedent(text)}', "utf-8")
        return load_pipeline(file)

    def run(self, text: str, name: str = "pipeline", **options: Any) -> PipelineStatus:
        """Run to the current end."""
        return self.run_loaded(self.load(text, name), **options)

    def run_loaded(self, pipeline: Pipeline, **options: Any) -> PipelineStatus:
        from ottla.spark.pipelines.running import RunOptions, run_pipeline
        from ottla.spark.pipelines.sessions import pipeline_session

        session = pipeline_session(pipeline, "local[2,3]")
        return run_pipeline(session, pipeline, RunOptions(**{"available_now": True, **options}))

    def rows(self, path: str = "table") -> list[Any]:
        return self.spark.read.parquet(str(self.folder / path)).collect()


@pytest.fixture
def pipelines(spark: "SparkSession", cluster: Cluster, tmp_path: Path) -> Pipelines:
    return Pipelines(spark, cluster, tmp_path)


@pytest.fixture
def send(cluster: Cluster) -> Callable[..., None]:
    """Write values, as JSON unless they are bytes."""

    def write(topic: str, values: Iterable[Any]) -> None:
        with Producer(cluster.servers) as producer:
            for value in values:
                producer.send(topic, value if isinstance(value, bytes) else json.dumps(value).encode())

    return write


@pytest.fixture
def read(cluster: Cluster) -> Callable[[str], list[Any]]:
    """All committed records of a topic."""

    def all_of(topic: str) -> list[Any]:
        with Consumer(
            cluster.servers, [topic], auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            found: list[Any] = []
            while batch := consumer.poll(timeout_ms=500):
                found += batch
        return found

    return all_of


@pytest.fixture(scope="package")
def postgresql() -> Iterator[str]:
    """A separate server, on a socket in a folder."""
    for program in ("initdb", "pg_ctl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: PostgreSQL's server is needed")
    pytest.importorskip("psycopg")
    as_somebody = []
    if os.getuid() == 0:
        # PostgreSQL refuses to run as root.
        if shutil.which("runuser") is None:
            pytest.skip("runuser is not installed: PostgreSQL's server does not run as root")
        as_somebody = ["runuser", "-u", "nobody", "--"]
    # Not among pytest's own folders: each pytest that starts closes these to other users, and a server that can no
    # longer open its files ends.
    with tempfile.TemporaryDirectory(prefix="ottla-postgresql-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o777)
        data = folder / "data"

        def call(*command: object) -> None:
            done = subprocess.run(
                [*as_somebody, *map(str, command)], cwd=folder, capture_output=True, text=True, check=False
            )
            if done.returncode:
                pytest.skip(f"PostgreSQL's server cannot be started here: {done.stderr.strip() or done.stdout.strip()}")

        # Files in its own folder instead of /dev/shm, which is small in containers.
        settings = f"-k {folder} -c listen_addresses='' -c dynamic_shared_memory_type=mmap -F"
        call("initdb", "-D", data, "-U", "ottla", "--auth=trust", "--no-sync")
        call("pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", settings, "start")
        yield f"postgresql://ottla@/postgres?host={folder}"
        call("pg_ctl", "-D", data, "-m", "immediate", "stop")


@pytest.fixture(scope="package")
def bucket() -> Iterator[Bucket]:
    """Of an S3-compatible server on this machine."""
    for package in ("obstore", "moto", "boto3"):
        pytest.importorskip(package)
    with moto_bucket() as made:
        yield made


def a_sink(kind: str, **given: Any) -> Any:
    """A sink of any kind, with those of the given keys that it has."""
    made = SINKS.find(kind)
    known = {key: value for key, value in given.items() if key in made.__struct_fields__}
    return made(name="out", of="rows", **known)
