"""Error responses as Kafka sends them: the error code in its place, and Kafka's values in all other fields."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import NODEFAULT, structs

from ottla.core.errors import ErrorCode
from ottla.storage.catalog.entries import ResourceType
from ottla.wire.declare import NO_UUID, Fixed, Message, RecordBytes, Text
from ottla.wire.schema import Array, Nested, layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.requests.turns import InTurns, Turns
    from ottla.wire.schema import Field

M = TypeVar("M", bound=Message)
_LOOKS_AT_CLOCK: Final = 32
"""Check the clock after this many entries of a list."""

CODES: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_MESSAGES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
_CODE_FIELDS: Final = frozenset({"error_code", "partition_error_code"})
_NAME_FIELDS: Final = frozenset({"name", "group_id", "key", "transactional_id", "user"})
"""Fields that identify an entry if a request lists plain names."""
_INDEX_FIELDS: Final = ("partition_index", "partition", "partition_id", "index")
"""The names of the partition index field; an API's request and response may use different ones."""
_IDENTITY: Final = frozenset(
    {
        *_NAME_FIELDS,
        "topic",
        "topic_name",
        "topic_id",
        "resource_type",
        "resource_name",
        "entity",
        "WritableTxnMarkerResult.producer_id",
    }
)
"""Fields that are copied from the request. Fields of the same name that are not listed here have another meaning in the
response.
"""
_FILLED: Final = frozenset(
    {
        "AlterPartitionReassignmentsResponse",
        "ElectLeadersResponse",
        "DescribeUserScramCredentialsResponse",
    }
)
"""Responses that list the requested entries although they have a top-level error code; other lists are empty."""
_VALUES: Final[Mapping[str, object]] = {
    "base_offset": -1,
    "committed_offset": -1,
    "high_watermark": -1,
    "low_watermark": -1,
    "node_id": -1,
    "port": -1,
    "CreatableTopicResult.configs": (),
    "DescribeClientQuotasResponse.entries": None,
    "DescribeShareGroupOffsetsResponsePartition.start_offset": -1,
    "InitProducerIdResponse.producer_id": -1,
    "InitProducerIdResponse.producer_epoch": -1,
    "OffsetFetchResponsePartition.metadata": "",
    "OffsetFetchResponsePartitions.metadata": "",
    "PartitionResult.start_offset": 0,
}
"""Kafka's values of fields in error responses that differ from the field's default."""


def refusal(kind: type[M], asked: object, code: ErrorCode, version: int) -> M:
    """Build an error response of this type for a request, an entry of one, a name or a number."""
    made = refusing(kind, asked, code, version, None)
    while True:
        try:
            next(made)
        except StopIteration as done:
            return cast("M", done.value)


def refusing(kind: type[M], asked: object, code: ErrorCode, version: int, turns: Turns | None) -> InTurns[M]:
    """Like `refusal`, in time slices: one request may list 100,000 partitions."""
    values: dict[str, object] = {}
    for field in layout(kind, version).fields:
        part = _part(field)
        if part is not None and _has_code(part, version) and _lists(kind, version):
            made = []
            for one in _parts_asked(asked):
                made.append((yield from refusing(part, one, code, version, turns)))
                if turns is not None and not len(made) % _LOOKS_AT_CLOCK and turns.are_over():
                    yield
            values[field.name] = tuple(made)
            continue
        value = _value(kind, field, asked, code, version)
        if value is not _DEFAULT:
            values[field.name] = value
    return kind(**values)


_DEFAULT: Final = object()


def _value(kind: type[Message], field: Field, asked: object, code: ErrorCode, version: int) -> object:
    if field.name in _CODE_FIELDS:
        return code
    if field.name == "error_message":
        return _MESSAGES.get(code)
    same = _identity(kind, field.name, asked)
    if same is not None:
        return same
    known = _VALUES.get(f"{kind.__name__}.{field.name}", _VALUES.get(field.name, _DEFAULT))
    return _blank(field, version) if known is _DEFAULT and field.default is NODEFAULT else known


def part_of(kind: type[Message], name: str, version: int) -> type[Message]:
    """The message type of this list field."""
    [part] = [_part(field) for field in layout(kind, version).fields if field.name == name]
    if part is None:
        raise TypeError(f"{kind.__name__}.{name} is not a list of messages")
    return part


def _part(field: Field) -> type[Message] | None:
    match field.type:
        case Array(Nested(struct)):
            return struct
    return None


def _lists(kind: type[Message], version: int) -> bool:
    """Whether the response lists the requested entries. It does not if it has a top-level error code."""
    has_own = any(field.name in _CODE_FIELDS for field in layout(kind, version).fields)
    return not has_own or kind.__name__ in _FILLED


def _identity(kind: type[Message], name: str, asked: object) -> object:
    """The value that identifies this entry of the request; None if the field does not identify it."""
    if name in _INDEX_FIELDS:
        if isinstance(asked, int):
            return asked
        return next((getattr(asked, one) for one in _INDEX_FIELDS if hasattr(asked, one)), None)
    if isinstance(asked, str):
        return asked if name in _NAME_FIELDS else None
    if name in _IDENTITY or f"{kind.__name__}.{name}" in _IDENTITY:
        return getattr(asked, "name" if name == "user" else name, None)
    return None


def _parts_asked(asked: object) -> tuple[Any, ...]:
    """The lists in the request: partitions, topics or names."""
    if not isinstance(asked, Message):
        return ()
    lists = [value for value in structs.asdict(asked).values() if isinstance(value, tuple)]
    return tuple(one for some in lists for one in some)


@cache
def _has_code(kind: type[Message], version: int) -> bool:
    """Whether a response of this type has an error code anywhere."""
    fields = layout(kind, version).fields
    if any(field.name in _CODE_FIELDS for field in fields):
        return True
    return any(part is not None and _has_code(part, version) for part in map(_part, fields))


def _blank(field: Field, version: int) -> object:
    match field.type:
        case Fixed("16s"):
            return NO_UUID
        case Fixed():
            return 0
        case Array():
            return ()
        case Nested(struct):
            return None if field.is_nullable else refusal(struct, None, ErrorCode.NONE, version)
        case RecordBytes():
            return b""
        case Text():
            return None if field.is_nullable else ""
        case _:
            return None if field.is_nullable else b""
