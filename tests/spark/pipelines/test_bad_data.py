"""Records that do not parse, however large: the pipeline continues, and each dead letter has the reason."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

from ottla import Producer
from ottla.core.errors import ConfigError
from ottla.core.pipeline_status import PipelineStatus
from ottla.spark.pipelines.reporting import Reporter
from ottla.spark.pipelines.running import PipelineFailed

pytestmark = pytest.mark.timeout(300)
Send = Callable[..., None]
Read = Callable[[str], list[Any]]
FILE = """
[source.orders]
topics = "{topic}"
schema = "qty int, price decimal(12,2), at timestamp, place struct<x:int>"
dead_letters = "{topic}.dead"
[sink.table]
kind = "parquet"
path = "table"
"""
GOOD = {"qty": 1, "price": "8112590.55", "at": "2026-01-01T00:00:00Z", "place": {"x": 1}}
BAD = {
    "qty": (GOOD | {"qty": "three boxes"}, 'qty: "three boxes" is not a valid int'),
    "price": (GOOD | {"price": "12345678901234.5"}, 'price: "12345678901234.5" is not a valid decimal(12,2)'),
    "at": (GOOD | {"at": "soon"}, 'at: "soon" is not a valid timestamp'),
    "place": (GOOD | {"place": {"x": "east"}}, 'place: {"x": "east"} is not a valid struct<x:int>'),
}


def test_a_dead_letter_names_the_field_that_spark_refused_and_a_large_one_is_cut(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read
) -> None:
    topic = cluster.topic()
    large = b'{"qty": "' + b"x" * 1_048_400 + b'"'
    send(topic, [GOOD, *(record for record, _ in BAD.values())])
    with Producer(cluster.servers) as producer:
        producer.send(topic, large, headers=[("trace", b"abc")])

    said: list[str] = []
    assert pipelines.run(FILE.format(topic=topic), say=said.append).state == "finished"

    assert said[-1] == f"orders-dead-letters: {len(BAD) + 1} sent to topic {topic}.dead"
    assert [row.qty for row in pipelines.rows()] == [1]
    *small, cut = sorted(read(f"{topic}.dead"), key=lambda record: len(record.value))
    assert {dict(each.headers)["ottla.error"].decode() for each in small} == {reason for _, reason in BAD.values()}
    headers = dict(cut.headers)
    assert large.startswith(cut.value)
    assert (len(cut.value), headers["ottla.value-bytes"]) == (900_000, b"%d" % len(large))
    assert headers["trace"] == b"abc"
    assert headers["ottla.error"].startswith(b"not JSON")
    assert "ottla.value-bytes" not in dict(small[0].headers)


def test_a_restarted_pipeline_knows_its_lag_before_its_first_micro_batch(
    pipelines: Pipelines, cluster: Cluster, send: Send
) -> None:
    from ottla.spark.pipelines import running

    topic = cluster.topic()
    send(topic, [GOOD])
    pipelines.run(FILE.format(topic=topic))
    send(topic, [GOOD] * 20)
    told: list[PipelineStatus] = []

    class Listening(Reporter):
        def tell(self, status: PipelineStatus) -> None:
            told.append(status)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "Reporter", Listening)
        pipelines.run(FILE.format(topic=topic))

    assert told[0].state == "starting"
    assert {query.name: query.lag for query in told[0].queries} == {"table": 20, "orders-dead-letters": 20}
    assert [query.lag for query in told[-1].queries] == [0, 0]


def test_a_failed_query_is_a_one_line_error_with_its_stack_in_a_file(
    pipelines: Pipelines, cluster: Cluster, send: Send
) -> None:
    topic = cluster.topic()
    send(topic, [GOOD])
    text = FILE.format(topic=topic).replace("[sink.table]", '[step.rows]\nsql = "{sql}"\n[sink.table]')
    with pytest.raises(ConfigError, match=r"^\[sink.table\]: \[CAST_INVALID_INPUT\] The value 'x' .*$"):
        pipelines.run(text.replace("{sql}", "SELECT CAST('x' AS int) + qty AS qty FROM orders"))
    sql = "SELECT CAST(CAST(at AS string) AS int) + qty AS qty FROM orders"

    with pytest.raises(PipelineFailed) as failed:
        pipelines.run(text.replace("{sql}", sql), restarts=0)

    [line] = str(failed.value).splitlines()
    assert line.startswith("pipeline: table failed: ")
    assert "CAST_INVALID_INPUT" in line
    assert "at org.apache.spark" in (pipelines.folder / "pipeline.state" / "table.failure.txt").read_text()
    assert str(pipelines.folder / "pipeline.state" / "table.failure.txt") in line
