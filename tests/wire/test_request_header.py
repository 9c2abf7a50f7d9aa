"""Headers by API and version, against kio's, and what is refused in them."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_writer

from ottla.core.errors import ProtocolError
from ottla.wire.apis import API_VERSIONS, APIS, HEARTBEAT, METADATA, PRODUCE
from ottla.wire.header import (
    RequestHeader,
    begin_request,
    has_tags_in_response_header,
    read_header_in_python,
    read_request_header,
    read_response_header,
)

if TYPE_CHECKING:
    from collections.abc import Callable

EACH_READER = pytest.mark.parametrize("read", [read_header_in_python, read_request_header])
EVERY_VERSION = [(api, version) for api in APIS.values() for version in range(api.first, api.last + 1)]


def header_bytes(key: int, version: int, client_id: bytes | None = b"me", tail: bytes = b"") -> memoryview:
    length = -1 if client_id is None else len(client_id)
    return memoryview(struct.pack(">hhih", key, version, 77, length) + (client_id or b"") + tail)


@EACH_READER
@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "grüße"])
def test_every_header_is_read_and_written_as_kio_writes_it(
    read: Callable[[memoryview], RequestHeader], client_id: str | None
) -> None:
    for api, version in EVERY_VERSION:
        schema: Any = load_request_schema(api.key, version).__header_schema__
        theirs = schema(request_api_key=api.key, request_api_version=version, correlation_id=-5, client_id=client_id)
        buffer = io.BytesIO()
        entity_writer(schema)(buffer, theirs)
        data = buffer.getvalue()
        assert begin_request(api, version, -5, client_id)[4:] == data
        assert read(memoryview(data + b"body")) == RequestHeader(api, version, -5, client_id, len(data))


def test_every_response_header_is_read_as_kio_writes_it() -> None:
    for api, version in EVERY_VERSION:
        schema: Any = load_response_schema(api.key, version).__header_schema__
        buffer = io.BytesIO()
        entity_writer(schema)(buffer, schema(correlation_id=77))
        data = buffer.getvalue()
        assert has_tags_in_response_header(api, version) == (len(data) == 5)
        assert read_response_header(api, version, memoryview(data)) == (77, len(data))


@pytest.mark.parametrize("version", range(API_VERSIONS.first, API_VERSIONS.last + 1))
def test_the_response_header_of_api_versions_never_has_tags(version: int) -> None:
    assert not has_tags_in_response_header(API_VERSIONS, version)


@EACH_READER
def test_a_header_of_a_version_from_the_future_is_read(read: Callable[[memoryview], RequestHeader]) -> None:
    header = read(header_bytes(API_VERSIONS.key, 99, tail=b"\0?"))
    assert (header.api, header.version, header.correlation_id) == (API_VERSIONS, 99, 77)


@EACH_READER
def test_tagged_fields_in_a_header_are_skipped(read: Callable[[memoryview], RequestHeader]) -> None:
    header = read(header_bytes(METADATA.key, 12, tail=b"\x02\x00\x03abc\x01\x00body"))
    assert header.body_at == 10 + 2 + 8


@EACH_READER
@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "ends early"),
        (bytes(9), "ends early"),
        (header_bytes(9999, 0), "unknown API key 9999"),
        (header_bytes(-1, 0), "unknown API key -1"),
        (struct.pack(">hhih", 0, 9, 1, -2), "client_id has invalid length -2"),
        (struct.pack(">hhih", 0, 9, 1, 40_000 - 65_536) + bytes(40_000), "client_id has invalid length -25536"),
        (struct.pack(">hhih", 0, 9, 1, 10) + b"short", "client_id claims 10 bytes, but only 5 are left"),
        (header_bytes(HEARTBEAT.key, 0, b"\xff\xfe"), "is not UTF-8"),
        (header_bytes(HEARTBEAT.key, 4), "ends early"),
        (header_bytes(HEARTBEAT.key, 4, tail=b"\xff\xff\xff\xff\xff\x01"), "does not fit 32 bits"),
        (header_bytes(HEARTBEAT.key, 4, tail=b"\xe9\x07" + bytes(5000)), "tagged fields claims 1001 entries"),
        (header_bytes(HEARTBEAT.key, 4, tail=b"\x01\x00\x05ab"), "tagged field 0 claims 5 bytes, but only 2 are left"),
    ],
)
def test_a_broken_header_is_refused_with_a_reason(
    read: Callable[[memoryview], RequestHeader], data: bytes, complaint: str
) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        read(memoryview(data))


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(
    key=st.sampled_from((0, 1, 3, 12, 18, 999)),
    version=st.integers(-3, 20),
    rest=st.binary(max_size=40),
)
def test_both_readers_make_the_same_of_any_bytes(key: int, version: int, rest: bytes) -> None:
    frame = memoryview(struct.pack(">hhi", key, version, 7) + rest)
    outcomes = []
    for read in (read_header_in_python, read_request_header):
        try:
            outcomes.append(repr(read(frame)))
        except ProtocolError as refused:
            outcomes.append(str(refused))
    assert outcomes[0] == outcomes[1]


def test_a_request_header_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot encode a request header"):
        begin_request(PRODUCE, 9, 2**31, "me")
    with pytest.raises(ValueError, match="cannot encode a request header"):
        begin_request(PRODUCE, 9, 1, "m" * 40_000)


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\x07"])
def test_a_response_header_that_ends_early_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="response header: ends early"):
        read_response_header(PRODUCE, 9, memoryview(data))


def test_the_compiled_reader_is_used_where_there_is_one() -> None:
    reader = pytest.importorskip("ottla.wire.reader")
    assert isinstance(getattr(read_request_header, "__self__", None), reader.HeaderReader)
