"""Declarations of messages.

A field's annotation defines its wire format and version range; its Python default is the value in
versions that lack it, and of an omitted tagged field:

    class PartitionProduceResponse(Message, frozen=True, kw_only=True):
        index: Int32
        base_offset: Int64
        log_start_offset: Annotated[Int64, Since(5)] = -1
        current_leader: Annotated[LeaderIdAndEpoch, Tag(0, since=10)] = LeaderIdAndEpoch()

Whether lengths are compact follows from the version, so there are no compact types. Nullable strings and
bytes have their own types; a nullable array or struct is written `tuple[X, ...] | None`, `X | None`.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, TypeAlias

from msgspec import Struct

from ottla.wire.apis import Api

if TYPE_CHECKING:
    from ottla.core.file_range import FileRange


class Message(Struct, frozen=True, gc=False):
    """A message or a part of one.

    gc=False holds because a frozen struct of numbers, text, bytes and tuples of frozen structs cannot form a
    cycle. Subclasses repeat `frozen=True, kw_only=True`: msgspec does not inherit the latter, mypy not the
    former, and a metaclass that filled them in would make building an instance three times slower before
    Python 3.12.
    """


class Response(Message, frozen=True):
    API: ClassVar[Api]


class Trailed(Message, frozen=True):
    """A message that may be followed by unknown fields of a newer peer, which are ignored."""


class Request(Trailed, frozen=True):
    API: ClassVar[Api]
    RESPONSE: ClassVar[type[Response]]


class Fixed(Struct, frozen=True):
    """A fixed-size value, named by its `struct` format character."""

    format: str
    size: int


class Text(Struct, frozen=True):
    """UTF-8 with an int16 or compact length."""


class Blob(Struct, frozen=True):
    """Bytes with an int32 or compact length; copied, so that it may outlive its frame."""


class RecordBytes(Struct, frozen=True):
    """Like Blob, but a slice of the frame when decoded, and unless it is small a separate buffer when encoded."""


class Since(Struct, frozen=True):
    """The first version that has the field."""

    version: int


class Until(Struct, frozen=True):
    """The last version that has the field."""

    version: int


class NullableSince(Struct, frozen=True):
    """The first version in which the field may be null; without it, it may be null in every version."""

    version: int


class Tag(Struct, frozen=True):
    """The field is tagged (KIP-482), and exists from version `since`."""

    number: int
    since: int


AnyBytes: TypeAlias = bytes | bytearray | memoryview
Sendable: TypeAlias = "AnyBytes | FileRange"
"""A part of a response. Only the records of a fetch can be a range of a file."""

Bool: TypeAlias = Annotated[bool, Fixed("?", 1)]
Int8: TypeAlias = Annotated[int, Fixed("b", 1)]
Int16: TypeAlias = Annotated[int, Fixed("h", 2)]
Int32: TypeAlias = Annotated[int, Fixed("i", 4)]
Int64: TypeAlias = Annotated[int, Fixed("q", 8)]
Float64: TypeAlias = Annotated[float, Fixed("d", 8)]
Uuid: TypeAlias = Annotated[bytes, Fixed("16s", 16)]
"""Plain bytes: topics are looked up by them, and building a UUID object costs more than the rest of a partition."""
String: TypeAlias = Annotated[str, Text()]
NullableString: TypeAlias = Annotated[str | None, Text()]
Bytes: TypeAlias = Annotated[bytes, Blob()]
NullableBytes: TypeAlias = Annotated[bytes | None, Blob()]
Records: TypeAlias = Annotated[AnyBytes | None, RecordBytes()]

NO_UUID: Final = bytes(16)
