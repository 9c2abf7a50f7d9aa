"""Messages as lines of text, both ways: what `ottla produce` reads and `ottla consume` writes.

A JSON line holds `value` and, if need be, `key`, `headers`, `partition` and `timestamp` (milliseconds, or ISO 8601).
Bytes that are not text are base64, in `value_base64` and `key_base64`. Each command reads the other's output.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.consumer.record import ConsumerRecord

Headers = tuple[tuple[str, bytes | None], ...]

_NAMES: Final = frozenset({"key", "key_base64", "value", "value_base64", "headers", "partition", "timestamp"})
_TOLD_ONLY: Final = frozenset({"topic", "offset"})
"""What a consumed line says besides, and a produced one has no use for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class Json(bytes):
    """The JSON of a key or value that was decoded by its schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A record with a decoded key or value."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    is_log_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: Headers


def from_line(line: bytes) -> Message:
    return Message(value=line)


def from_key_value(line: bytes, separator: bytes) -> Message:
    key, found, value = line.partition(separator)
    if not found:
        raise ConfigError(f"no key separator {separator.decode()!r}")
    return Message(key=key, value=value)


def from_json(line: bytes) -> Message:
    try:
        fields = msgspec.json.decode(line)
    except msgspec.DecodeError as broken:
        raise ConfigError(f"not JSON: {broken}") from None
    if not isinstance(fields, dict):
        raise ConfigError('a JSON line is an object such as {"key": "a", "value": "b"}')
    if unknown := sorted(fields.keys() - _NAMES - _TOLD_ONLY):
        raise ConfigError(f"unknown field {unknown[0]!r}; there are {', '.join(sorted(_NAMES))}")
    if "value" not in fields and "value_base64" not in fields:
        raise ConfigError("there is no value; null deletes a key")
    return Message(
        key=_content(fields, "key"),
        value=_content(fields, "value"),
        headers=_headers(fields.get("headers")),
        partition=_partition(fields.get("partition")),
        timestamp_ms=_timestamp(fields.get("timestamp")),
    )


def _content(fields: dict[str, Any], name: str) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is None:
        return _as_bytes(fields.get(name))
    if fields.get(name) is not None:
        raise ConfigError(f"give {name} or {name}_base64, not both")
    try:
        return base64.b64decode(encoded, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ConfigError(f"{name}_base64 is not base64") from None


def _as_bytes(value: object) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _headers(given: object) -> Headers:
    if given is None:
        return ()
    pairs = given.items() if isinstance(given, dict) else given
    try:
        named = [(name, value) for name, value in pairs]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ConfigError('headers are an object such as {"trace": "7"}, or a list of pairs') from None
    if not all(isinstance(name, str) for name, _ in named):
        raise ConfigError("the name of a header is text")
    return tuple((name, _as_bytes(value)) for name, value in named)


def _partition(given: object) -> int | None:
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
        raise ConfigError(f"a partition is a number from 0 on, not {given!r}")
    return given


def _timestamp(given: object) -> int | None:
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    if isinstance(given, str):
        return milliseconds(given)
    raise ConfigError(f"a timestamp is milliseconds or ISO 8601, not {given!r}")


def milliseconds(text: str) -> int:
    """ISO 8601, in local time unless it says otherwise, as milliseconds since 1970."""
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise ConfigError(f"{text!r} is not a time such as 2026-11-15T09:30:00+01:00") from None


def to_value(record: ConsumerRecord[bytes, bytes]) -> bytes:
    return b"" if record.value is None else record.value


def to_key_value(record: ConsumerRecord[bytes, bytes], separator: bytes) -> bytes:
    return (record.key or b"") + separator + (record.value or b"")


def to_json(record: ConsumerRecord[bytes, bytes]) -> bytes:
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    fields |= _told("key", record.key)
    fields |= _told("value", record.value)
    if record.headers:
        fields["headers"] = [[name, _as_text(value)] for name, value in record.headers]
    return msgspec.json.encode(fields)


def to_full(record: ConsumerRecord[bytes, bytes]) -> bytes:
    at = datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds")
    headers = "".join(f"  {name}={_as_text(value)}" for name, value in record.headers)
    place = f"{record.topic}-{record.partition}@{record.offset}"
    return f"{place}  {at}  {_as_text(record.key)}: {_as_text(record.value)}{headers}".encode()


def _told(name: str, content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {name: None}
    if isinstance(content, Json):
        return {name: msgspec.Raw(content)}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def _as_text(content: bytes | None) -> str:
    return "null" if content is None else content.decode(errors="backslashreplace")


FORMATS_OUT: Final[dict[str, Callable[[ConsumerRecord[bytes, bytes], bytes], bytes]]] = {
    "value": lambda record, _: to_value(record),
    "key-value": to_key_value,
    "json": lambda record, _: to_json(record),
    "full": lambda record, _: to_full(record),
}
FORMATS_IN: Final[dict[str, Callable[[bytes, bytes], Message]]] = {
    "value": lambda line, _: from_line(line),
    "key-value": from_key_value,
    "json": lambda line, _: from_json(line),
}
