"""The answer to what is not allowed: the code, wherever such an answer has a place for one."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from msgspec import structs

from ottla.core.errors import ErrorCode
from ottla.storage.catalog.entries import ResourceType
from ottla.wire.declare import NO_UUID, Message

M = TypeVar("M", bound=Message)

CODES: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_SAYINGS: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
_CODE_FIELDS: Final = frozenset({"error_code", "partition_error_code"})
_NAME_FIELDS: Final = frozenset({"name", "group_id", "key", "transactional_id", "user"})
_INDEX_FIELDS: Final = frozenset({"partition_index", "partition", "partition_id", "index"})


def refusal(kind: type[M], asked: object, code: ErrorCode) -> M:
    """An answer of this kind to what was asked: a request, a part of one, a name or a number."""
    values = {}
    for field in _fields(kind):
        value = _value(kind, field.name, asked, code)
        if value is not _LEAVE:
            values[field.name] = value
        elif field.required:
            is_id = field.name == "topic_id"
            values[field.name] = NO_UUID if is_id else _blank(hint_of(kind, field.name))
    return kind(**values)


@cache
def _fields(kind: type[Message]) -> tuple[structs.FieldInfo, ...]:
    return structs.fields(kind)


_LEAVE: Final = object()


def _value(kind: type[Message], name: str, asked: object, code: ErrorCode) -> object:
    if name in _CODE_FIELDS:
        return code
    if name == "error_message":
        return _SAYINGS.get(code)
    part = part_of(hint_of(kind, name))
    if part is not None and _has_code(part):
        return tuple(refusal(part, one, code) for one in _parts_asked(asked))
    if isinstance(asked, str) and name in _NAME_FIELDS:
        return asked
    if isinstance(asked, int) and name in _INDEX_FIELDS:
        return asked
    same = getattr(asked, "name" if name == "user" else name, _LEAVE)
    # A list that says no code is left empty; whose quota it is about is no such list.
    return _LEAVE if name != "entity" and (part is not None or isinstance(same, tuple)) else same


def _parts_asked(asked: object) -> tuple[Any, ...]:
    """The lists in what was asked: of partitions, of topics, of names."""
    if not isinstance(asked, Message):
        return ()
    lists = [value for value in structs.asdict(asked).values() if isinstance(value, tuple)]
    return tuple(one for some in lists for one in some)


@cache
def _has_code(kind: type[Message]) -> bool:
    """Whether an answer of this kind says somewhere that it is a refusal."""
    if not _CODE_FIELDS.isdisjoint(kind.__struct_fields__):
        return True
    parts = (part_of(hint_of(kind, name)) for name in kind.__struct_fields__)
    return any(part is not None and _has_code(part) for part in parts)


@cache
def _hints(kind: type[Message]) -> dict[str, Any]:
    return get_type_hints(kind)


def hint_of(kind: type[Message], name: str) -> Any:  # noqa: ANN401 - a type, or what stands for one
    return _hints(kind)[name]


def part_of(hint: Any) -> type[Message] | None:  # noqa: ANN401
    """The messages that a list of them holds, also where it may be null."""
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return arguments[0] if isinstance(arguments[0], type) and issubclass(arguments[0], Message) else None
    return next((part for one in arguments if (part := part_of(one)) is not None), None)


def _blank(hint: Any) -> object:  # noqa: ANN401
    arguments = get_args(hint)
    if type(None) in arguments:
        return None
    if get_origin(hint) is tuple:
        return ()
    if isinstance(hint, type) and issubclass(hint, Message):
        return refusal(hint, None, ErrorCode.NONE)
    blanks: dict[object, object] = {str: "", bytes: b"", bool: False, int: -1, float: 0.0}
    return blanks.get(hint, b"")
