"""The requests of a micro-batch: each is a round trip that Spark waits for."""

from collections import Counter
from typing import Any

import pytest
from tests.spark.conftest import Cluster

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.client.connection import Connection
from ottla.spark.reader.options import parse_source
from ottla.spark.reader.rows import spark_schema
from ottla.spark.reader.stream_reader import StreamReader


class Query:
    """What Spark asks of the source, without Spark: the planner and the tasks share this process."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        given = {"kafka.bootstrap.servers": cluster.servers, "subscribe": topic, "startingOffsets": "earliest"}
        options = parse_source({**given, "kafka.client.id": topic}, is_stream=True)
        self._reader = StreamReader(options, spark_schema(with_headers=False))
        self._done = self._reader.initialOffset()

    def micro_batch(self) -> list[bytes]:
        end = self._reader.latestOffset(self._done, ReadAllAvailable())
        partitions = self._reader.partitions(self._done, end)
        self._done = end
        batches = (batch for each in partitions for batch in self._reader.read(each))
        return [value for batch in batches for value in batch.column("value").to_pylist()]


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many requests of each kind were sent, and connections opened, in this process."""
    seen: Counter[str] = Counter()
    ask = Connection.ask

    def counted(self: Connection, request: Any, **options: Any) -> Any:
        seen[type(request).__name__.removesuffix("Request")] += 1
        return ask(self, request, **options)

    monkeypatch.setattr(Connection, "ask", counted)
    return seen


def test_a_micro_batch_takes_two_requests_to_plan_and_one_fetch_for_each_partition(
    cluster: Cluster, requests: Counter[str]
) -> None:
    topic = cluster.topic(partitions=3)
    query = Query(cluster, topic)
    first = list(range(30))
    for number in first:
        cluster.write(topic, [b"%d" % number], partition=number % 3)
    assert sorted(map(int, query.micro_batch())) == first
    for partition in range(3):
        cluster.write(topic, [b"%d" % partition] * 10, partition=partition)
    requests.clear()

    assert sorted(query.micro_batch()) == sorted(b"%d" % (number % 3) for number in range(30))

    # The planner's and the task's; the connections of the first micro-batch are used again.
    assert requests == {"Metadata": 2, "ListOffsets": 1, "Fetch": 3}
