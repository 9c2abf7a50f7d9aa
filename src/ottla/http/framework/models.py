"""JSON structs shared by several endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from ottla.http.records.payloads import ShownEncoding, Wanted, show

if TYPE_CHECKING:
    from ottla.http.records.decoded import Decoding
    from ottla.records.reader import Record

PartitionIndex = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
OffsetNumber = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
TimestampMs = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1, description="Milliseconds since 1970")]


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """The base of response bodies."""


class RequestStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of request bodies: unknown fields are errors."""


class Header(Struct, frozen=True, kw_only=True):
    name: str
    value: Any
    encoding: ShownEncoding


class Message(Struct, frozen=True, kw_only=True):
    partition: int
    offset: int
    timestamp: int
    timestamp_type: Literal["CreateTime", "LogAppendTime"]
    key: Any
    key_encoding: ShownEncoding
    value: Any
    value_encoding: ShownEncoding
    headers: list[Header]


class Done(Struct, frozen=True, kw_only=True):
    """Success."""

    done: bool = True


def message_of(
    record: Record, partition: int, keys: Wanted, values: Wanted, decoding: Decoding | None = None
) -> Message:
    """`decoding`: for the encoding `schema`."""
    if decoding is not None and keys == "schema":
        key, key_encoding = decoding.show(record, "key")
    else:
        key, key_encoding = show(record.key, keys)
    if decoding is not None and values == "schema":
        value, value_encoding = decoding.show(record, "value")
    else:
        value, value_encoding = show(record.value, values)
    headers = []
    for name, held in record.headers:
        shown, encoding = show(held)
        headers.append(Header(name=name, value=shown, encoding=encoding))
    return Message(
        partition=partition,
        offset=record.offset,
        timestamp=record.timestamp,
        timestamp_type="LogAppendTime" if record.is_log_append_time else "CreateTime",
        key=key,
        key_encoding=key_encoding,
        value=value,
        value_encoding=value_encoding,
        headers=headers,
    )
