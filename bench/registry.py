"""The schema registry: registering, looking up, starting with many schemas; and validation of records per batch.

Beside Karapace, if KARAPACE names a Python interpreter that has it: it serves a second broker's `_schemas`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from interop.karapace import karapace_on, karapace_python

from bench.report import Row, against
from bench.requests import connect, exchange
from ottla.client.blocking.admin import Admin
from ottla.client.blocking.producer import Producer
from ottla.records.encode import BatchBuilder
from ottla.registry import records
from ottla.registry.model import Schema, Version
from ottla.schema.frames import SchemaId
from ottla.schema.registry import Registry
from ottla.wire.codec import encode_request
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

SCHEMAS = 10_000
OPERATIONS = 300
BATCHES = 2000
ROUNDS = 5
_PATIENCE_S = 120.0
_VALIDATION = "confluent.value.schema.validation"


def schema_text(number: int) -> str:
    fields = [{"name": f"field_{at}", "type": "string", "default": ""} for at in range(10)]
    return json.dumps({"type": "record", "name": f"Record{number}", "namespace": "bench", "fields": fields})


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        _, url = stack.enter_context(serving(Path(folder) / "ours"))
        other = stack.enter_context(karapace(Path(folder) / "theirs"))
        yield from _registering(url, other)
    yield from _many()
    yield from _validation()


# Servers


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, str]]:
    """A broker: its address, and that of its registry."""
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    command = ["ottla", "serve", "--port", "0", "--http-port", "0", "--data-dir", str(folder / "data")]
    with _process([sys.executable, "-m", *command, "--ready-file", str(ready)]):
        _until(ready.exists)
        told = json.loads(ready.read_text())
        yield told["kafka"], told["schema_registry"]


@contextmanager
def karapace(folder: Path) -> Iterator[str | None]:
    """Its URL once it answers; None without it."""
    python = karapace_python()
    if python is None:
        yield None
        return
    with serving(folder) as (kafka, _), karapace_on(python, kafka, folder / "karapace.log") as url:
        yield url


@contextmanager
def _process(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _until(holds: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > deadline_s:
            raise TimeoutError("a server did not become ready")
        time.sleep(0.005)


def fill(kafka: str) -> None:
    """Write many schemas to `_schemas`, as a registry would."""
    with Admin(kafka) as admin:
        if "_schemas" not in admin.list_topics():
            admin.create_topic("_schemas", partitions=1, configs={"cleanup.policy": "compact"})
    with Producer(kafka) as producer:
        for number in range(1, SCHEMAS + 1):
            schema = Schema(schema_text(number))
            key, value = records.schema_record(Version(f"subject-{number}", 1, number, schema))
            producer.send("_schemas", value, key=key)


# Measurements


def _registering(url: str, other: str | None) -> Iterator[Row]:
    ours, theirs = _each(url, _register), None if other is None else _each(other, _register)
    yield _row("register a schema", ours, theirs)
    yield _row("look up by id, over HTTP", _each(url, _by_id), None if other is None else _each(other, _by_id))
    yield _row("look up a schema of a subject", _each(url, _look_up), None if other is None else _each(other, _look_up))
    registry = Registry(url)
    registry.schema(SchemaId(number=1))
    began_s = time.perf_counter()
    for _ in range(OPERATIONS):
        registry.schema(SchemaId(number=1))
    yield Row(what="look up by id, cached by the client", ours=_us((time.perf_counter() - began_s) / OPERATIONS * 1e6))


def _register(client: httpx.Client, number: int) -> httpx.Response:
    return client.post(f"/subjects/new-{number}/versions", json={"schema": schema_text(SCHEMAS + number)})


def _by_id(client: httpx.Client, number: int) -> httpx.Response:
    return client.get(f"/schemas/ids/{number + 1}")


def _look_up(client: httpx.Client, number: int) -> httpx.Response:
    return client.post(f"/subjects/new-{number}", json={"schema": schema_text(SCHEMAS + number)})


def _each(url: str, operation: Callable[[httpx.Client, int], httpx.Response], count: int = OPERATIONS) -> float:
    """Microseconds: the median."""
    times = []
    with httpx.Client(base_url=url, timeout=60) as client:
        for number in range(count):
            began_s = time.perf_counter()
            answer = operation(client, number)
            times.append((time.perf_counter() - began_s) * 1e6)
            answer.raise_for_status()
    return statistics.median(times)


def _many() -> Iterator[Row]:
    """With 10,000 schemas, each of another subject."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder) / "ours"
        with serving(place) as (kafka, _):
            fill(kafka)
        began_s = time.perf_counter()
        _, url = stack.enter_context(serving(place))
        _until(lambda: len(httpx.get(f"{url}/subjects", timeout=60).json()) >= SCHEMAS)
        ours_s = time.perf_counter() - began_s
        theirs_s, other = None, None
        if (python := karapace_python()) is not None:
            theirs, _ = stack.enter_context(serving(Path(folder) / "theirs"))
            fill(theirs)
            began_s = time.perf_counter()
            other = stack.enter_context(karapace_on(python, theirs, Path(folder) / "karapace.log"))
            _until(lambda: len(httpx.get(f"{other}/subjects", timeout=60).json()) >= SCHEMAS)
            theirs_s = time.perf_counter() - began_s
        what = f"start with {SCHEMAS:,} schemas"
        yield _row(f"{what}, the broker included", ours_s * 1e6, None if theirs_s is None else theirs_s * 1e6)
        for name, operation in (("register", _register), ("look up by id", _by_id), ("list all subjects", _list)):
            count = 20 if operation is _list else OPERATIONS
            mine = _each(url, operation, count)
            yield _row(
                f"{name}, with {SCHEMAS:,} subjects", mine, None if other is None else _each(other, operation, count)
            )


def _list(client: httpx.Client, _: int) -> httpx.Response:
    return client.get("/subjects")


def _validation() -> Iterator[Row]:
    """Time of a produce request, on one connection, with and without validation in turns."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as (kafka, url):
        body = {"schema": '"string"'}
        number = httpx.post(f"{url}/subjects/checked-value/versions", json=body).json()["id"]
        with Admin(kafka) as admin:
            admin.create_topic("plain", partitions=1)
            admin.create_topic("checked", partitions=1, configs={_VALIDATION: "true"})
        with connect(int(kafka.rpartition(":")[2])) as connection:
            for count in (1, 100, 1000):
                frames = {topic: _frame(topic, number, count) for topic in ("plain", "checked")}
                times: dict[str, list[float]] = {topic: [] for topic in frames}
                for _ in range(ROUNDS):
                    for topic, frame in frames.items():
                        began_s = time.perf_counter()
                        for _ in range(BATCHES // ROUNDS):
                            exchange(connection, frame)
                        times[topic].append((time.perf_counter() - began_s) / (BATCHES // ROUNDS) * 1e6)
                checked, plain = statistics.median(times["checked"]), statistics.median(times["plain"])
                yield against(f"produce a batch of {count:,} with validation, against without", checked, plain)


def _frame(topic: str, number: int, count: int) -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(int(time.time() * 1000), None, b"\0" + number.to_bytes(4) + bytes(100))
    data = PartitionProduceData(index=0, records=memoryview(builder.build()))
    topics = (TopicProduceData(name=topic, partition_data=(data,)),)
    return b"".join(encode_request(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 9, 1, "bench"))


def _row(what: str, ours_us: float, theirs_us: float | None) -> Row:
    if theirs_us is None:
        return Row(what=what, ours=_us(ours_us))
    return Row(what=f"{what}, beside Karapace", ours=_us(ours_us), theirs=_us(theirs_us), ratio=ours_us / theirs_us)


def _us(value: float) -> str:
    return f"{value:,.0f} µs" if value >= 1 else f"{value:.2f} µs"
