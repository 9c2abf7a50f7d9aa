"""`ottla lake`: decoding speed of the writer, the time of a commit as commits grow in number, and freshness.

Speeds are megabytes of values per second of CPU time of the writer's process, all threads: reading, decoding, Parquet
and commits. BENCH_SHORT=1 takes a tenth of the records and commits.
"""

from __future__ import annotations

import io
import json
import threading
import time
import urllib.request
from contextlib import contextmanager
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import fastavro

from bench.report import Row
from bench.rounds import IS_SHORT
from bench.sides import Ottla, free_port
from ottla import Admin, Producer
from ottla.client.blocking.background import Background
from ottla.lake.catalogs import LakeSettings, open_catalog
from ottla.lake.covered import offsets
from ottla.lake.running import LakeRun, RunSettings
from ottla.lake.values import ValueSettings
from ottla.lake.writer import TopicSettings, TopicWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS = 100_000 if IS_SHORT else 1_000_000
COMMITS = 100 if IS_SHORT else 1000
FRESH_RECORDS = 100 if IS_SHORT else 1000
INTERVAL_S = 1.0
COLUMNS = "id bigint, store int, price double, note string"
FIELDS = [("id", "long"), ("store", "int"), ("price", "double"), ("note", "string")]
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": name, "type": kind} for name, kind in FIELDS]}
GOAL_MB_PER_S = 50.0


class _Broker(Ottla):
    def __init__(self) -> None:
        super().__init__()
        self.http_port = free_port()

    def command(self) -> list[str]:
        found = super().command()
        found[found.index("--http-port") + 1] = str(self.http_port)
        return found

    @property
    def registry(self) -> str:
        return f"http://127.0.0.1:{self.http_port}/schema-registry"


def rows() -> Iterator[Row]:
    with _Broker() as side:
        link = Background("bench", side.bootstrap, {})
        try:
            _decoding(side, link, "warm-up", [b'{"id":1}'], _json())
            yield _decoding(side, link, "JSON", [json.dumps(each).encode() for each in _orders()], _json())
            schema_id = _registered(side, "Avro")
            values = ValueSettings(format="registry", registry=side.registry)
            yield _decoding(side, link, "Avro", [_avro(each, schema_id) for each in _orders()], values)
            yield _commits(side, link)
            yield _freshness(side, link)
        finally:
            link.close()


def _json() -> ValueSettings:
    return ValueSettings(format="json", columns=COLUMNS)


def _orders() -> Iterator[dict[str, Any]]:
    for each in range(RECORDS):
        yield {"id": each, "store": each % 50, "price": each % 1000 / 4, "note": f"order number {each} of a customer"}


def _avro(order: dict[str, Any], schema_id: int) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, SCHEMA, order)
    return b"\0" + schema_id.to_bytes(4, "big") + buffer.getvalue()


def _registered(side: _Broker, topic: str) -> int:
    body = json.dumps({"schema": json.dumps(SCHEMA)}).encode()
    request = urllib.request.Request(  # noqa: S310 - the broker of this benchmark
        f"{side.registry}/subjects/{topic}-value/versions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return int(json.load(answer)["id"])


def _lake(side: _Broker) -> LakeSettings:
    return LakeSettings(folder=side.folder / "lake")


@contextmanager
def _writer(side: _Broker, link: Background, topic: str, values: ValueSettings) -> Iterator[TopicWriter]:
    settings = TopicSettings(topic=topic, namespace="topics", values=values, interval_s=INTERVAL_S)
    writer = TopicWriter(link, open_catalog(_lake(side)), settings)
    try:
        yield writer
    finally:
        writer.close()


def _decoding(side: _Broker, link: Background, topic: str, values: list[bytes], settings: ValueSettings) -> Row:
    with Admin(side.bootstrap) as admin:
        admin.create_topic(topic, partitions=4)
    with Producer(side.bootstrap) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, partition=number % 4)
    with _writer(side, link, topic, settings) as writer:
        began_s, cpu_s, count = time.perf_counter(), time.process_time(), 0
        while (done := writer.round()).lag:
            count += done.rows
        count += done.rows
        took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    if count != len(values):
        raise RuntimeError(f"{count} of {len(values)} records are in the table")
    megabytes = sum(map(len, values)) / 1e6
    return Row(
        what=f"{topic}, {len(values):,} records of {len(values[0])} B: MB per second of CPU",
        ours=f"{megabytes / cpu_s:.1f} MB/s ({megabytes / took_s:.1f} MB/s of wall time)",
        goal=f">= {GOAL_MB_PER_S:g} MB/s",
        is_reached=megabytes / cpu_s >= GOAL_MB_PER_S,
    )


def _commits(side: _Broker, link: Background) -> Row:
    with Admin(side.bootstrap) as admin:
        admin.create_topic("commits", partitions=1)
    took_ms, cpu_ms = [], []
    with Producer(side.bootstrap) as producer, _writer(side, link, "commits", _json()) as writer:
        for number in range(COMMITS):
            producer.send("commits", b'{"id":%d}' % number).result()
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            writer.round()
            took_ms.append((time.perf_counter() - began_s) * 1000)
            cpu_ms.append((time.process_time() - began_cpu_s) * 1000)
    early, late = median(cpu_ms[5:15]), median(cpu_ms[-10:])
    return Row(
        what=f"CPU time of commit {COMMITS:,} against commit 10 (median of ten)",
        ours=f"{late:.0f} ms ({median(took_ms[-10:]):.0f} ms of wall time)",
        theirs=f"{early:.0f} ms ({median(took_ms[5:15]):.0f} ms of wall time)",
        ratio=late / early,
        goal="<= 1.5x",
        is_reached=late <= 1.5 * early,
    )


def _freshness(side: _Broker, link: Background) -> Row:
    with Admin(side.bootstrap) as admin:
        admin.create_topic("fresh", partitions=1)
    settings = TopicSettings(topic="fresh", namespace="topics", values=_json(), interval_s=INTERVAL_S)
    running = LakeRun(link, RunSettings(lake=_lake(side)), lambda *_: None)
    thread = threading.Thread(target=running.run, args=([settings],))
    thread.start()
    sent_s: list[float] = []
    seen_s: list[float] = []
    catalog = open_catalog(_lake(side))
    try:
        with Producer(side.bootstrap) as producer:
            while len(seen_s) < FRESH_RECORDS:
                if len(sent_s) < FRESH_RECORDS:
                    producer.send("fresh", b'{"id":1}').result()
                    sent_s.append(time.perf_counter())
                if catalog.table_exists("topics.fresh"):
                    end = offsets(catalog.load_table("topics.fresh")).get(0, 0)
                    seen_s += [time.perf_counter()] * (end - len(seen_s))
                time.sleep(0.02)
    finally:
        running.stop()
        thread.join()
    late_s = [seen - sent for sent, seen in zip(sent_s, seen_s, strict=True)]
    p99_s = quantiles(late_s, n=100)[98]
    return Row(
        what=f"freshness p99, committed every {INTERVAL_S:g} s: acknowledged to readable",
        ours=f"{p99_s:.2f} s",
        goal=f"<= {INTERVAL_S + 2:g} s",
        is_reached=p99_s <= INTERVAL_S + 2,
    )
