"""A damaged catalog: the start-up error says what to do, and doing it restores every record."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import ottla

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 30


def produce(servers: str, value: bytes, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **settings})
    if settings:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
    producer.produce("orders", value, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    if settings:
        producer.commit_transaction(PATIENCE_S)


def consumed(servers: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("orders", 0, 0)])
    found = [each.value() for each in consumer.consume(count, PATIENCE_S)]
    consumer.commit(offsets=[TopicPartition("orders", 0, count)], asynchronous=False)
    consumer.close()
    return found


@pytest.mark.parametrize("how", ["flipped", "truncated", "emptied"])
def test_the_remedy_for_a_damaged_catalog_restores_all_records(tmp_path: Path, how: str) -> None:
    data, aside = tmp_path / "data", tmp_path / "aside"
    with ottla.Broker(data) as broker:
        produce(broker.bootstrap_servers, b"first")
        produce(broker.bootstrap_servers, b"second", **{"transactional.id": "billing"})
        assert consumed(broker.bootstrap_servers, 2) == [b"first", b"second"]
    catalog = data / "catalog.sqlite"
    content = bytearray(catalog.read_bytes())
    if how == "flipped":
        content[100] ^= 1  # the kind of the first page
    catalog.write_bytes(content[: {"flipped": len(content), "truncated": len(content) // 2, "emptied": 0}[how]])

    started = subprocess.run(
        [sys.executable, "-m", "ottla", "serve", "--data-dir", str(data), "--port", "0", "--http-port", "-1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert started.returncode == 1
    assert "catalog.sqlite is damaged" in started.stderr
    assert "Restore it from a backup, or move catalog.sqlite" in started.stderr
    aside.mkdir()
    for file in data.glob("catalog.sqlite*"):
        file.rename(aside / file.name)
    with ottla.Broker(data) as broker:
        # With new producer ids, or its first batch would be treated as a duplicate.
        produce(broker.bootstrap_servers, b"third")
        produce(broker.bootstrap_servers, b"fourth", **{"transactional.id": "billing"})
        assert consumed(broker.bootstrap_servers, 4) == [b"first", b"second", b"third", b"fourth"]
