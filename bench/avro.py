"""Avro with schema ids: decoded to Arrow columns, beside fastavro; serialized, beside Confluent's serializers; decoded
in Spark, beside Spark's own function.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry import avro as confluent
from confluent_kafka.serialization import MessageField, SerializationContext

import ottla.testing
from bench import avro_in_spark
from bench.report import Row, against, speed
from ottla.decoding import programs
from ottla.decoding.decoder import ColumnDecoder
from ottla.decoding.schemas import settle
from ottla.schema import AvroDeserializer, AvroSerializer, Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = 20_000
ROUNDS = 5
FLAT = [{"name": f"c{at}", "type": kind} for at, kind in enumerate(["long", "double", "string", "int", "boolean"] * 2)]
NESTED = [
    {"name": "id", "type": "long"},
    {"name": "city", "type": ["null", "string"]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "shop", "type": {"type": "record", "name": "Shop", "fields": [{"name": "name", "type": "string"}]}},
]
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_VALUES: dict[str, Callable[[int], Any]] = {
    "flat": lambda at: {
        f"c{n}": value for n, value in enumerate([at, at / 7, f"text {at}", at % 100, at % 2 == 0] * 2)
    },
    "nested": lambda at: {
        "id": at,
        "city": "Prag" if at % 2 else None,
        "at": _AT,
        "price": Decimal(at % 1000).scaleb(-2),
        "tags": ["a", "b"][: at % 3],
        "shop": {"name": "main"},
    },
}


def rows() -> Iterator[Row]:
    with ottla.testing.broker() as broker:
        registry = Registry(broker.schema_registry_url)
        topics = []
        for name, fields in (("flat", FLAT), ("nested", NESTED)):
            schema = json.dumps({"type": "record", "name": "Order", "fields": fields})
            yield from _of(name, schema, registry)
            serialize = AvroSerializer(registry, schema)
            values = [serialize(_VALUES[name](at), name) for at in range(ROWS)]
            topics.append(avro_in_spark.Topic(name, schema, values))
        yield from avro_in_spark.rows(broker.bootstrap_servers, registry, topics)


def _of(name: str, schema: str, registry: Registry) -> Iterator[Row]:
    given = [_VALUES[name](at) for at in range(ROWS)]
    serialize = AvroSerializer(registry, schema)
    data = [serialize(each, name) for each in given]
    decoder = ColumnDecoder(registry, settle(registry, f"{name}-value"), "ignore")
    values = pa.array(data, pa.binary())
    latest = registry.latest(f"{name}-value").schema
    slow = programs.RowProgram(programs._avro_reader(registry, latest, latest), decoder.arrow_type)  # noqa: SLF001
    ours = _cpu_s(lambda: decoder.decode(values))
    theirs = _cpu_s(lambda: slow.decode(values, 5))
    what = f"Avro to Arrow, a {name} record of {len(given[0])} fields, beside fastavro and pyarrow"
    yield speed(what, ROWS / ours / 1e6, ROWS / theirs / 1e6, "million rows per CPU s", at_least=10)

    with SchemaRegistryClient({"url": registry.url}) as client:
        context = SerializationContext(name, MessageField.VALUE)
        write, read = confluent.AvroSerializer(client, schema), confluent.AvroDeserializer(client)
        our_read = AvroDeserializer(registry)
        per_us = 1e6 / ROWS
        ours, theirs = (
            _cpu_s(lambda: [serialize(each, name) for each in given]),
            _cpu_s(lambda: [write(each, context) for each in given]),
        )
        yield against(f"serialize a {name} record, beside confluent-kafka", ours * per_us, theirs * per_us, at_most=1.0)
        ours, theirs = (
            _cpu_s(lambda: [our_read(each) for each in data]),
            _cpu_s(lambda: [read(each, context) for each in data]),
        )
        yield against(
            f"deserialize a {name} record, beside confluent-kafka", ours * per_us, theirs * per_us, at_most=1.0
        )


def _cpu_s(work: Callable[[], Any]) -> float:
    """The least of some rounds."""
    found = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)
