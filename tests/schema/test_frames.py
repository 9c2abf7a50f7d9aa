"""Wire formats of schema ids."""

from __future__ import annotations

import pytest

from ottla.core.errors import ConfigError
from ottla.schema.errors import SchemaError
from ottla.schema.frames import SchemaId, guid_bytes, header_indexes, id_bytes, index_bytes, read_indexes, split
from ottla.schema.subjects import subject_of

GUID = "89791762-2336-186f-9674-299b90a802e2"


def test_an_id_is_a_zero_byte_and_four_bytes() -> None:
    assert id_bytes(258) == b"\0\0\0\1\2"
    assert split(b"\0\0\0\1\2data", "value") == (SchemaId(number=258), 5)


def test_a_guid_is_a_byte_of_one_and_sixteen_bytes() -> None:
    assert guid_bytes(GUID) == b"\1" + bytes.fromhex(GUID.replace("-", ""))
    assert split(guid_bytes(GUID) + b"data", "value") == (SchemaId(guid=GUID), 17)


def test_a_header_comes_before_the_prefix() -> None:
    headers = (("__key_schema_id", id_bytes(1)), ("__value_schema_id", guid_bytes(GUID) + b"\x02\x04"))
    assert split(b"\0\0\0\0\7", "value", headers) == (SchemaId(guid=GUID), 0)
    assert split(b"\0\0\0\0\7", "key", headers) == (SchemaId(number=1), 0)
    assert header_indexes("value", headers) == b"\x02\x04"
    assert header_indexes("value", ()) is None


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1", b"\1short", b"{}     ", None])
def test_data_without_an_id_are_refused(data: bytes | None) -> None:
    with pytest.raises(SchemaError, match="no schema id"):
        split(data, "value")


@pytest.mark.parametrize(
    ("indexes", "written"), [((0,), b"\0"), ((1,), b"\2\2"), ((0, 0), b"\4\0\0"), ((2, 64), b"\4\4\x80\1")]
)
def test_message_indexes(indexes: tuple[int, ...], written: bytes) -> None:
    assert index_bytes(indexes) == written
    assert read_indexes(b"x" + written + b"rest", 1) == (indexes, 1 + len(written))


@pytest.mark.parametrize("data", [b"", b"\x04\x02", b"\x01", b"\xff" * 12, b"\xfe\x7f"])
def test_malformed_message_indexes_are_refused(data: bytes) -> None:
    with pytest.raises(SchemaError, match="message indexes"):
        read_indexes(data)


def test_subjects() -> None:
    assert subject_of("topic", "orders", "key", "shop.Order") == "orders-key"
    assert subject_of("record", None, "value", "shop.Order") == "shop.Order"
    assert subject_of("topic-record", "orders", "value", "shop.Order") == "orders-shop.Order"
    assert subject_of(lambda topic, part, record: f"{topic}/{part}/{record}", "t", "key", None) == "t/key/None"
    with pytest.raises(SchemaError, match="depends on the topic"):
        subject_of("topic", None, "value", None)
    with pytest.raises(SchemaError, match="has no name"):
        subject_of("record", "t", "value", None)
    with pytest.raises(ConfigError, match="topic, record, topic-record"):
        subject_of("topics", "t", "value", None)
