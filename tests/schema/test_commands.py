"""`ottla produce --schema` and `ottla consume` with schemas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from ottla.cli.connecting import Reach
from ottla.cli.main import program
from ottla.cli.messages.schemas import registry_of
from ottla.cli.profiles import Profile
from ottla.schema import AvroSerializer, ProtobufSerializer, Schema
from ottla.schema.avro_json import avro_value
from ottla.schema.errors import RegistryRefused, SchemaError

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.schema import Registry
    from ottla.testing.ephemeral import EphemeralBroker

AVRO = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"}, {"name": "raw", "type": ["null", "bytes"], "default": null},
  {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
  {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]}]}"""
LINE = '{"id":1,"raw":"AAE=","price":"1.50","day":"2026-01-02"}'
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; string name = 2; }'


class Commands:
    def __init__(self, broker: EphemeralBroker, url: str) -> None:
        self._places = ["--broker", broker.bootstrap_servers, "--schema-registry", url]

    def __call__(self, *arguments: str, given: str = "", fails: bool = False) -> Any:
        done = CliRunner().invoke(program, [*arguments, *self._places], input=given)
        assert (done.exit_code != 0) == fails, done.output
        return done

    def all_of(self, topic: str, *options: str) -> list[str]:
        return str(self("consume", topic, "--from", "beginning", "--exit", *options).stdout).splitlines()


@pytest.fixture
def command(broker: EphemeralBroker, registry: Registry) -> Commands:
    return Commands(broker, registry.url)


def test_a_file_is_registered_and_what_is_consumed_can_be_produced(
    command: Commands, registry: Registry, tmp_path: Path
) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(AVRO)
    command("produce", "files", "--schema", str(file), given=LINE)
    assert registry.latest("files-value").version == 1
    assert command.all_of("files") == [LINE]
    [full] = command.all_of("files", "--format", "json")
    assert json.loads(full)["value"] == json.loads(LINE)
    command("produce", "files", "--schema", "files-value", "--format", "json", given=full)
    assert command.all_of("files") == [LINE, LINE]
    assert "Order" not in command.all_of("files", "--raw")[0]


def test_a_dry_run_registers_nothing(command: Commands, registry: Registry, tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(AVRO)

    done = command("produce", "tried", "--dry-run", "--schema", str(file), given=LINE, fails=True)

    assert "ottla schema register tried-value" in done.output
    with pytest.raises(RegistryRefused):
        registry.latest("tried-value")
    registry.register("tried-value", Schema(AVRO))
    done = command("produce", "tried", "--dry-run", "--schema", str(file), given=LINE)
    assert "1 message could be written to tried" in done.output


def test_by_id_with_a_key(command: Commands, registry: Registry) -> None:
    value = registry.register("v", Schema(PROTO, "PROTOBUF")).id
    registry.register("k", Schema('"string"'))
    options = ("--schema", str(value), "--key-schema", "k", "--format", "key-value")
    command("produce", "keyed", *options, given='ann:{"id":7,"name":"pen"}')
    assert command.all_of("keyed", "--format", "key-value") == ['"ann":{"id":"7","name":"pen"}']


def test_a_line_that_does_not_fit_is_named(command: Commands, registry: Registry) -> None:
    registry.register("strict", Schema(AVRO))
    done = command("produce", "strict", "--schema", "strict", given=f'{LINE}\n{{"nr":1}}', fails=True)
    refused = "the value is refused: no field 'nr' in Order (it has id, raw, price, day)"
    assert f"standard input, line 2: {refused}" in done.output
    done = command("produce", "strict", "--schema", "strict", given="no json", fails=True)
    assert "line 1: the value is refused: not JSON" in done.output
    done = command("produce", "strict", "--schema", "nothing", given="", fails=True)
    assert "40401" in done.output
    assert "a subject, an id, or a file with the ending .avsc, .json, .proto" in done.output


def test_what_cannot_be_decoded_is_printed_as_it_is(
    command: Commands, broker: EphemeralBroker, registry: Registry
) -> None:
    good = AvroSerializer(registry, '{"type":"record","name":"A","fields":[]}')({}, topic="mixed")
    proto = ProtobufSerializer(registry, PROTO)({"id": 1}, topic="mixed-2")
    values = [b"plain", good, b"\0\0\0\x7f\xffx", proto, b""]
    for value in values:
        broker.produce("mixed", value)
    done = command("consume", "mixed", "--from", "beginning", "--exit")
    assert done.stdout_bytes.split(b"\n") == [b"plain", b"{}", values[2], b'{"id":"1"}', b"", b""]
    assert "mixed-0 at offset 2: value not decoded: no schema with id 32767" in done.stderr


def test_a_registry_that_is_given_must_answer(broker: EphemeralBroker) -> None:
    broker.produce("framed", b"\0\0\0\0\1x")
    done = Commands(broker, "http://127.0.0.1:1")("consume", "framed", "--from", "beginning", "--exit", fails=True)
    assert "cannot reach the schema registry at http://127.0.0.1:1" in done.output


def test_json_values_of_unions() -> None:
    schema = ["null", "long", "string", {"type": "array", "items": "bytes"}]
    assert [avro_value(schema, each, {}) for each in (None, 5, "x", ["AAE="])] == [None, 5, "x", [b"\0\1"]]
    with pytest.raises(SchemaError, match="is not base64"):
        avro_value("bytes", "?", {})


@pytest.mark.parametrize(
    ("profile", "url", "expected"),
    [
        (Profile(servers="kafka:9092,other:9092"), None, "http://kafka:8080/schema-registry"),
        (Profile(servers="[::1]:9092"), None, "http://[::1]:8080/schema-registry"),
        (Profile(servers="kafka:9093", tls=True), None, "https://kafka:8080/schema-registry"),
        (Profile(servers="kafka:9092", schema_registry="http://registry:8081"), None, "http://registry:8081"),
        (Profile(servers="kafka:9092", schema_registry="http://registry:8081"), "other:1", "http://other:1"),
    ],
)
def test_the_registry_of_a_broker(profile: Profile, url: str | None, expected: str) -> None:
    assert registry_of(Reach(profile), url).url == expected
