"""Topics that accept only records with a schema id of their subject: refused records, and dead letters."""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.broker.making import batch, create_topic, fetch, send_batch, set_topic_config, values_in
from tests.broker.raw_client import RawClient
from tests.rest.serving import HttpBroker

import ottla
from ottla.core.errors import ErrorCode
from ottla.records.compression import Compression
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.wire.messages.produce import PartitionProduceResponse

VALUE = "confluent.value.schema.validation"
KEY = "confluent.key.schema.validation"
STRATEGY = "confluent.value.subject.name.strategy"
PACKAGE = "io.confluent.kafka.serializers.subject."
DEAD_LETTERS = "ottla.schema.validation.dead.letter.topic"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    with HttpBroker(tmp_path_factory.mktemp("broker")) as served:
        yield served


@pytest.fixture
def kafka(served: HttpBroker) -> Iterator[RawClient]:
    with RawClient(served.servers) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_numbers)}"


def register(served: HttpBroker, subject: str, name: str = "", **more: Any) -> dict[str, Any]:
    schema = '{"type":"record","name":"%s","fields":[]}' % (name or subject.replace("-", "_"))
    url = f"{served.url}/schema-registry/subjects/{subject}/versions"
    answer = httpx.post(url, json={"schema": schema, **more}, timeout=20)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def framed(number: int, rest: bytes = b"data") -> bytes:
    return b"\0" + number.to_bytes(4) + rest


def problems(result: PartitionProduceResponse) -> dict[int, str | None]:
    assert result.error_code == ErrorCode.INVALID_RECORD
    return {each.batch_index: each.batch_index_error_message for each in result.record_errors}


def test_records_with_an_id_of_the_subject_are_accepted(served: HttpBroker, kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic, configs={VALUE: "true"})
    first, second = (register(served, f"{topic}-value", f"v{at}_{topic[6:]}", force=True)["id"] for at in (1, 1))
    assert first == second
    for codec in (Compression.NONE, Compression.ZSTD):
        assert send_batch(kafka, topic, batch(framed(first), framed(first), codec=codec)).error_code == 0
    assert values_in(kafka, topic) == [framed(first)] * 4


def test_other_records_are_refused_and_named(served: HttpBroker, kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic, configs={VALUE: "true"})
    own = register(served, f"{topic}-value")["id"]
    other = register(served, f"{topic}-other")["id"]
    result = send_batch(
        kafka, topic, batch(framed(own), framed(9999), framed(other), b"plain", b"", b"\0\0", framed(own))
    )
    assert problems(result) == {
        1: f"value: schema id 9999 is not registered under subject {topic}-value",
        2: f"value: schema id {other} is not registered under subject {topic}-value",
        3: "the value has no schema id",
        4: "the value has no schema id",
        5: "the value has no schema id",
    }
    assert result.error_message.startswith("schema validation: record 1: value: schema id 9999")  # type: ignore[union-attr]
    assert values_in(kafka, topic) == []


def test_a_schema_is_valid_as_soon_as_it_is_registered_and_no_longer_once_deleted(
    served: HttpBroker, kafka: RawClient, topic: str
) -> None:
    create_topic(kafka, topic, configs={VALUE: "true"})
    own = register(served, f"{topic}-value")["id"]
    assert problems(send_batch(kafka, topic, batch(framed(own + 1)))).keys() == {0}
    assert register(served, f"{topic}-key")["id"] == own + 1
    assert problems(send_batch(kafka, topic, batch(framed(own + 1)))).keys() == {0}
    assert send_batch(kafka, topic, batch(framed(own))).error_code == 0
    httpx.delete(f"{served.url}/schema-registry/subjects/{topic}-value")
    assert problems(send_batch(kafka, topic, batch(framed(own)))).keys() == {0}


def test_a_null_has_no_schema(kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic, configs={VALUE: "true", KEY: "true"})
    builder = BatchBuilder()
    builder.append(1_000, None, None)
    assert send_batch(kafka, topic, bytes(builder.build())).error_code == 0


def test_keys_are_validated_apart_from_values(served: HttpBroker, kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic, configs={KEY: "true"})
    own = register(served, f"{topic}-key")["id"]
    assert send_batch(kafka, topic, batch(b"plain", key=framed(own))).error_code == 0
    assert problems(send_batch(kafka, topic, batch(b"x", key=b"plain"))) == {0: "the key has no schema id"}


def test_a_guid_and_a_header_carry_the_id_too(served: HttpBroker, kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic, configs={VALUE: "true"})
    made = register(served, f"{topic}-value")
    guid = b"\1" + uuid.UUID(made["guid"]).bytes
    for value, header in ((guid + b"x", None), (b"x", guid), (b"x", framed(made["id"], b""))):
        builder = BatchBuilder()
        builder.append(1_000, None, value, () if header is None else (("__value_schema_id", header),))
        assert send_batch(kafka, topic, bytes(builder.build())).error_code == 0
    unknown = b"\1" + uuid.UUID(int=7).bytes
    [problem] = problems(send_batch(kafka, topic, batch(unknown))).values()
    assert problem == f"value: schema {uuid.UUID(int=7)} is not registered under subject {topic}-value"


def test_subjects_are_named_by_the_strategy(served: HttpBroker, kafka: RawClient, topic: str) -> None:
    name = topic.replace("-", "_")
    by_record = register(served, name, name)["id"]
    create_topic(kafka, topic, configs={VALUE: "true", STRATEGY: f"{PACKAGE}RecordNameStrategy"})
    assert send_batch(kafka, topic, batch(framed(by_record))).error_code == 0
    wrong = register(served, f"{topic}-value", f"{name}_2")["id"]
    assert problems(send_batch(kafka, topic, batch(framed(wrong)))).keys() == {0}
    set_topic_config(kafka, topic, STRATEGY, f"{PACKAGE}TopicRecordNameStrategy")
    assert problems(send_batch(kafka, topic, batch(framed(by_record)))).keys() == {0}
    register(served, f"{topic}-{name}", name)
    assert send_batch(kafka, topic, batch(framed(by_record))).error_code == 0


def test_validation_is_switched_on_and_off_while_the_topic_is_in_use(kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic)
    assert send_batch(kafka, topic, batch(b"plain")).error_code == 0
    set_topic_config(kafka, topic, VALUE, "true")
    assert problems(send_batch(kafka, topic, batch(b"plain"))).keys() == {0}
    set_topic_config(kafka, topic, VALUE, "false")
    assert send_batch(kafka, topic, batch(b"plain")).error_code == 0


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_invalid_records_become_dead_letters(served: HttpBroker, kafka: RawClient, topic: str, codec: int) -> None:
    create_topic(kafka, topic, configs={VALUE: "true", DEAD_LETTERS: f"{topic}.dead"})
    own = register(served, f"{topic}-value")["id"]
    result = send_batch(kafka, topic, batch(b"one", framed(own), b"three", framed(own), codec=codec))
    assert (result.error_code, result.base_offset) == (0, 0)
    data = fetch(kafka, topic)
    found = [(record.offset, record.value) for record in RecordReader(bytes(data.records or b""))]
    assert found == [(1, framed(own)), (3, framed(own))]
    letters = list(RecordReader(bytes(fetch(kafka, f"{topic}.dead").records or b"")))
    assert [each.value for each in letters] == [b"one", b"three"]
    assert dict(letters[0].headers) == {
        "ottla-dead-letter-topic": topic.encode(),
        "ottla-dead-letter-partition": b"0",
        "ottla-dead-letter-reason": b"schema-validation",
        "ottla-dead-letter-error": b"the value has no schema id",
    }


def test_an_idempotent_producer_goes_on_after_dead_letters(served: HttpBroker, kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic, configs={VALUE: "true", DEAD_LETTERS: f"{topic}.dead"})
    own = register(served, f"{topic}-value")["id"]
    with ottla.Producer(served.servers) as producer:
        for value in (framed(own), b"bad", b"worse", framed(own)):
            producer.send(topic, value)
            producer.flush()
    assert values_in(kafka, topic) == [framed(own), framed(own)]
    assert values_in(kafka, f"{topic}.dead") == [b"bad", b"worse"]


def test_a_transaction_has_only_valid_records(served: HttpBroker, kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic, configs={VALUE: "true"})
    own = register(served, f"{topic}-value")["id"]
    with ottla.Producer(served.servers, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, framed(own))
        with pytest.raises(Exception, match="can only be aborted"), producer.transaction():
            producer.send(topic, b"plain")
    assert values_in(kafka, topic) == [framed(own)]


def test_records_of_the_rest_interface_are_validated(served: HttpBroker, kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic, configs={VALUE: "true"})
    answer = served.client.post(f"/v1/topics/{topic}/messages", json={"messages": [{"value": "plain"}]})
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_RECORD")


def test_what_validation_did_is_in_the_metrics(served: HttpBroker, kafka: RawClient, topic: str) -> None:
    create_topic(kafka, topic, configs={VALUE: "true"})
    send_batch(kafka, topic, batch(b"plain"))
    text = served.client.get("/metrics").text
    assert "ottla_schema_validation_refused_records_total " in text
    assert "ottla_schema_validation_dead_letters_total " in text


def test_without_validation_nothing_of_the_registry_is_loaded(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as kafka:
        create_topic(kafka, "t")
        send_batch(kafka, "t", batch(b"plain"))
        assert "schemas" not in vars(broker.broker)
