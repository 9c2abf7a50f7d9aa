"""The options with which a sink encodes values by a schema registry."""

import pickle

import pytest
from pyspark.sql.types import BinaryType, LongType, MapType, StringType, StructField, StructType

from ottla.core.errors import ConfigError
from ottla.spark.errors import SinkError
from ottla.spark.writer.options import parse_sink

ROW = StructType([StructField("id", LongType()), StructField("city", StringType())])
REGISTRY = "http://localhost:1/schema-registry"
GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "topic": "orders", "registry": REGISTRY}


def frame(value: object = ROW) -> StructType:
    return StructType([StructField("key", BinaryType()), StructField("value", value)])  # type: ignore[arg-type]


def test_a_struct_is_written_as_avro_under_the_subject_of_its_topic() -> None:
    parsed = parse_sink(GIVEN, frame())
    assert parsed.encode is not None
    [encoder] = parsed.encode._encoders.values()
    assert (encoder.format, encoder.subject, encoder.register) == ("avro", "orders-value", True)
    assert parsed.columns == ("key", "value")
    copied = pickle.loads(pickle.dumps(parsed))  # noqa: S301
    assert copied.encode._encoders["value"].subject == "orders-value"


def test_format_subject_and_registration_can_be_chosen() -> None:
    more = {"valueFormat": "protobuf", "subject": "shop.Order", "register": "false"}
    encode = parse_sink({**GIVEN, **more}, frame()).encode
    assert encode is not None
    [encoder] = encode._encoders.values()
    assert (encoder.format, encoder.subject, encoder.register) == ("protobuf", "shop.Order", False)


def test_a_key_that_is_a_struct_is_encoded_too() -> None:
    schema = StructType([StructField("key", ROW), StructField("value", ROW)])
    encode = parse_sink({**GIVEN, "keyFormat": "json"}, schema).encode
    assert encode is not None
    found = {part: (encoder.format, encoder.subject) for part, encoder in encode._encoders.items()}
    assert found == {"key": ("json", "orders-key"), "value": ("avro", "orders-value")}


def test_without_a_registry_values_stay_as_they_are() -> None:
    given = {name: value for name, value in GIVEN.items() if name != "registry"}
    assert parse_sink(given, frame(BinaryType())).encode is None


@pytest.mark.parametrize(
    ("options", "value", "reason"),
    [
        ({}, StringType(), r'must be a struct, such as F.struct\("\*"\).alias\("value"\)'),
        ({"topic": ""}, ROW, "registry needs subject, unless the option topic names one topic"),
        ({"valueFormat": "xml"}, ROW, "valueFormat must be avro, json or protobuf, got 'xml'"),
        ({"valueFormat": "protobuf"}, ROW, "no Protobuf field numbers"),
        ({"registry": ""}, BinaryType(), None),
        ({"registry": "", "valueFormat": "avro"}, BinaryType(), "option valueFormat needs the option registry"),
        (
            {},
            StructType([StructField("counts", MapType(LongType(), LongType()))]),
            "Avro has no map with keys of bigint; cast them to string",
        ),
    ],
)
def test_invalid_options_are_refused_before_anything_is_written(
    options: dict[str, str], value: object, reason: str | None
) -> None:
    if reason is None:
        assert parse_sink({**GIVEN, **options}, frame(value)).encode is None
        return
    with pytest.raises((ConfigError, SinkError), match=reason):
        parse_sink({**GIVEN, **options}, frame(value))
