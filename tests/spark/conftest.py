"""One Spark and one broker for all tests of the data source; each test has separate topics."""

import importlib.util
import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ottla import Admin, Producer
from ottla.broker.embedded import EmbeddedBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.testing import EphemeralBroker

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives for a minute: it takes half the CPU time."""
_numbers = itertools.count()


def why_there_is_no_spark() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'ottla[spark]'"
    if shutil.which("java") is None:
        return "Java is not installed: Spark needs Java 17 or later"
    return None


@pytest.fixture(scope="package")
def spark() -> "Iterator[SparkSession]":
    if reason := why_there_is_no_spark():
        pytest.skip(reason)
    import ottla.spark

    session = ottla.spark.session(
        "ottla tests",
        # A task may be tried three times.
        master="local[2,3]",
        config={"spark.sql.shuffle.partitions": "1", "spark.driver.extraJavaOptions": QUICK_JVM},
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


class Cluster:
    """A broker with shortcuts for these tests."""

    def __init__(self, broker: "EmbeddedBroker | EphemeralBroker", folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.servers = broker.bootstrap_servers

    def topic(self, partitions: int = 1, **configs: str) -> str:
        name = f"topic-{next(_numbers)}"
        with Admin(self.servers) as admin:
            admin.create_topic(name, partitions=partitions, configs=configs)
        return name

    def write(self, topic: str, values: "range | list[bytes]", partition: int | None = None) -> None:
        with Producer(self.servers) as producer:
            for value in values:
                data = value if isinstance(value, bytes) else b"%d" % value
                producer.send(topic, data, key=data, partition=partition)

    def reader(self, source: Any, **options: object) -> Any:
        """A reader of Spark's, batch or stream, with the options that all tests give it."""
        loaded = source.format("ottla").option("kafka.bootstrap.servers", self.servers)
        for name, value in options.items():
            loaded = loaded.option(name, str(value))
        return loaded

    def read(self, spark: "SparkSession", topic: str, **options: object) -> "DataFrame":
        return self.reader(spark.read, subscribe=topic, **options).load()

    def values(self, spark: "SparkSession", topic: str, isolation: str = "read_committed") -> list[bytes]:
        """All values of a topic, sorted."""
        read = self.read(spark, topic, **{"kafka.isolation.level": isolation})
        return sorted(bytes(row.value) for row in read.select("value").collect())


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(folder) as broker:
        yield Cluster(broker, folder)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Any]:
    """Run a stream to the current end, with the test's checkpoint."""

    def run_to_the_end(frame: "DataFrame", sink: str = "parquet", **options: object) -> Any:
        writer = frame.writeStream.format(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
        if sink == "parquet":
            writer = writer.option("path", str(tmp_path / "table"))
        if name := options.pop("name", None):
            writer = writer.queryName(str(name))
        for option, value in options.items():
            writer = writer.option(option.replace("__", "."), str(value))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    return run_to_the_end
