"""Values of each kind of schema, and tables in an object store: a real registry and an S3-compatible server."""

import itertools
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("pyiceberg")

from tests.spark.pipelines.object_stores import ACCESS_KEY, SECRET_KEY, moto_bucket  # noqa: E402

import ottla.testing  # noqa: E402 - after the check for pyiceberg
from ottla import Admin  # noqa: E402
from ottla.lake.maintaining import Upkeep, maintain  # noqa: E402
from ottla.lake.values import ValueSettings  # noqa: E402
from ottla.testing.ephemeral import EphemeralBroker  # noqa: E402

from .conftest import Lake  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
_numbers = itertools.count()
AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WIDER = {**AVRO, "fields": [*AVRO["fields"], {"name": "n", "type": ["null", "string"], "default": None}]}  # type: ignore[misc]
JSON_SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.fixture(scope="module")
def broker() -> Iterator[EphemeralBroker]:
    with ottla.testing.broker() as broker:
        yield broker


@pytest.fixture
def kept(lake: Lake, broker: EphemeralBroker) -> Lake:
    """With the tables of `lake`, and a topic of the broker that has a registry."""
    topic = f"registered-{next(_numbers)}"
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(topic, partitions=2)
    return Lake(broker.bootstrap_servers, topic, lake.settings)


def register(broker: EphemeralBroker, topic: str, schema: object, kind: str = "AVRO") -> bytes:
    """The bytes before a value with this schema."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    body = json.dumps({"schema": text, "schemaType": kind}).encode()
    url = f"{broker.schema_registry_url}/subjects/{topic}-value/versions"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - our registry
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return b"\0" + int(json.load(answer)["id"]).to_bytes(4, "big")


def test_values_are_decoded_by_their_avro_schemas_and_follow_newer_ones(broker: EphemeralBroker, kept: Lake) -> None:
    settings = ValueSettings(format="registry", registry=broker.schema_registry_url)
    first = register(broker, kept.topic, AVRO)
    kept.produce(first + b"\x06", b"no schema", first + b"\x08")
    assert kept.append(settings).dead_letters == 1
    second = register(broker, kept.topic, WIDER)
    kept.produce(first + b"\x0a", second + b"\x0c\x02\x02x")
    kept.append(settings)
    assert kept.rows()["id"].to_pylist() == [3, 4, 5, 6]
    assert kept.rows()["n"].to_pylist() == [None, None, None, "x"]


@pytest.mark.parametrize(
    ("kind", "schema", "body"),
    [
        ("JSON", JSON_SCHEMA, b'{"id":3}'),
        ("PROTOBUF", 'syntax = "proto3"; message Order { int64 id = 1; }', b"\0\x08\x03"),
    ],
)
def test_values_are_decoded_by_json_schemas_and_protobuf(
    broker: EphemeralBroker, kept: Lake, kind: str, schema: object, body: bytes
) -> None:
    prefix = register(broker, kept.topic, schema, kind)
    kept.produce(prefix + body, b"no schema", None)
    done = kept.append(ValueSettings(format="registry", registry=broker.schema_registry_url))
    assert (done.rows, done.dead_letters) == (2, 1)
    assert kept.rows()["id"].to_pylist() == [3, None]


@pytest.mark.slow
def test_tables_in_an_object_store_are_written_continued_and_maintained(lake: Lake) -> None:
    for package in ("moto", "boto3"):
        pytest.importorskip(package)
    with moto_bucket() as bucket:
        catalog = {
            "type": "sql",
            "uri": f"sqlite:///{lake.settings.folder}.db",
            "s3.endpoint": bucket.endpoint,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
            "s3.region": "us-east-1",
        }
        settings = replace(lake.settings, warehouse=f"{bucket.address}/tables", catalog=catalog)
        stored = Lake(lake.servers, lake.topic, settings)
        for number in range(3):
            stored.numbers(range(number, number + 1))
            stored.append()
        [done, *_] = maintain(settings, [lake.topic], Upkeep(2, 3600))
        assert (done.merged, done.into) == (3, 1)
        stored.numbers(range(3, 5))
        stored.append()
        assert stored.ids() == list(range(5))
        assert stored.table.location().startswith("s3://lake/tables/")
