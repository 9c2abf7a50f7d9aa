"""The examples in docs/groups.md and docs/transactions.md work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from tests.client.producer.reading import values

from .making import create_topic, until

if TYPE_CHECKING:
    import pytest

DOCS = Path(__file__).parents[2] / "docs"


def run_example(page: str, servers: str) -> dict[str, Any]:
    [code] = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code.replace("localhost:9092", servers), page, "exec"), names)  # noqa: S102
    return names


def produce(servers: str, topic: str, *values: bytes) -> None:
    create_topic(servers, topic)
    producer = Producer({"bootstrap.servers": servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def test_the_new_protocol_example_reads_topics_that_match_its_pattern(
    servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    produce(servers, "orders-eu", b"first")
    run_example("groups.md", servers)
    assert capsys.readouterr().out == "orders-eu b'first'\n"


def test_the_transactions_example_copies_records_exactly_once(servers: str) -> None:
    produce(servers, "orders", b"1", b"2", b"3")
    create_topic(servers, "bills")
    bills = [b"bill for 1", b"bill for 2", b"bill for 3"]
    for _ in range(2):  # nothing is left to do in the second run
        program = run_example("transactions.md", servers)
        consumer = program["consumer"]

        def is_done() -> bool:
            program["step"]()
            return [each.offset for each in consumer.committed(consumer.assignment(), timeout=20)] == [3]

        until(is_done)
        consumer.close()
        assert values(servers, "bills") == bills
