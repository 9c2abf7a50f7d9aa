"""Serializers and deserializers of keys and values.

A serializer is any function from a value to bytes, and determines the types of the producer's `send`: `str.encode`
works. None, for a null key or value, is not passed to a serializer.

A serializer with the methods of `RecordSerializer` also gets the topic and the headers, and a deserializer with
those of `RecordDeserializer` the headers. Both may need to wait, for a schema registry for example: that happens in a
thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.records.encode import Headers

T = TypeVar("T")
Serializer: TypeAlias = "Callable[[T], bytes]"
Deserializer: TypeAlias = "Callable[[bytes], T]"
Part = Literal["key", "value"]


@runtime_checkable
class RecordSerializer(Protocol):
    def is_ready(self, topic: str, part: Part) -> bool:
        """Whether `serialize` needs no waiting for keys or values of this topic."""

    def prepare(self, topic: str, part: Part) -> None:
        """Make it ready; may block."""

    def serialize(self, value: Any, topic: str, part: Part, headers: Headers) -> tuple[bytes, Headers]:  # noqa: ANN401
        """The bytes, and the record's headers."""


@runtime_checkable
class RecordDeserializer(Protocol):
    def deserialize(self, data: bytes, part: Part, headers: tuple[tuple[str, bytes | None], ...]) -> object:
        """The value; raises NotReady if that needs waiting."""


class NotReady(Exception):
    """Raised if a deserializer needs something first, which `prepare` gets; that may block."""

    def __init__(self, prepare: Callable[[], None]) -> None:
        super().__init__("not ready")
        self.prepare = prepare


# Methods of a shared encoder and decoder: called without intermediate Python code.
encode_text: Final[Serializer[str]] = str.encode
decode_text: Final[Deserializer[str]] = bytes.decode
encode_json: Final[Serializer[Any]] = msgspec.json.Encoder().encode
decode_json: Final[Deserializer[Any]] = msgspec.json.Decoder().decode
