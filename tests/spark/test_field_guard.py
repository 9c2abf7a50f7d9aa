"""A newer JSON Schema with more fields is noticed by the ids of values."""

import json
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

import ottla.testing
from ottla.decoding.decoder import NewSchema
from ottla.decoding.schemas import settle
from ottla.schema import Registry, RegistryUnavailable, Schema
from ottla.schema.frames import guid_bytes, id_bytes
from ottla.spark.registry.new_fields import FieldGuard


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with ottla.testing.broker() as broker:
        yield Registry(broker.schema_registry_url)


def schema(*names: str) -> Schema:
    text = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "additionalProperties": False}
    return Schema(json.dumps(text), "JSON")


def ids(*given: bytes | None) -> pa.Array:
    return pa.array(given, pa.binary())


def test_only_newer_schemas_with_more_fields_are_refused(registry: Registry) -> None:
    registry.register("old-value", schema("a", "b", "c"))
    first = registry.register("orders-value", schema("a", "b"))
    guard = pickle.loads(pickle.dumps(FieldGuard(registry, settle(registry, "orders-value"))))  # noqa: S301
    fewer = registry.register("less-value", schema("b"))
    avro = registry.register("avro-value", Schema('"string"'))
    guard.check(ids(None, b"", b"{", *map(id_bytes, (first.id - 1, first.id, fewer.id, avro.id, 4711))))

    newer = registry.register("orders-value", schema("a", "b", "note"))
    for each in (id_bytes(newer.id), guid_bytes(newer.guid)):
        with pytest.raises(NewSchema, match=r"the columns lack: note; start the query again"):
            guard.check(ids(id_bytes(first.id), each))
    FieldGuard(registry, settle(registry, "orders-value")).check(ids(id_bytes(newer.id)))


def test_an_unavailable_registry_fails_the_check(registry: Registry) -> None:
    settled = settle(registry, "orders-value")
    guard = FieldGuard(Registry("http://127.0.0.1:1", timeout_s=1), settled)
    guard.check(ids(id_bytes(settled.id)))
    with pytest.raises(RegistryUnavailable):
        guard.check(ids(id_bytes(settled.id + 1)))
