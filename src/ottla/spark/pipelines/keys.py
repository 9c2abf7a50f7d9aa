"""Keys of a pipeline's file as fields of a msgspec struct: each is read by its type, and every error is reported."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.loading_tables import read_jars
from ottla.spark.pipelines.stores.addresses import is_address
from ottla.spark.pipelines.stores.settings import StorageSettings, read_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ottla.spark.pipelines.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContext:
    """The parts of the pipeline's file that a key may depend on."""

    pipeline: str
    folder: Path
    """The folder of the file."""
    storage: StorageSettings
    """`[storage]`, for all sinks."""


class Reader(NamedTuple):
    """An annotation: how a key is read, if its type is not sufficient."""

    read: Callable[[Fields, str, FileContext], Any]


def _read_path(fields: Fields, key: str, context: FileContext) -> str:
    path = fields.text(key)
    if not path:
        return ""
    return path.rstrip("/") if is_address(path) else str(context.folder / path)


def _read_dead_letters(fields: Fields, key: str, context: FileContext) -> str:
    return fields.text(key, f"{context.pipeline}.dead-letters")


FilePath = Annotated[str, Reader(_read_path)]
"""A path relative to the pipeline's file, or the address of an object store."""
JarFiles = Annotated[tuple[str, ...], Reader(lambda fields, _, context: read_jars(fields, context.folder))]
"""Java archives for Spark, such as a JDBC driver."""
DeadLetterTopic = Annotated[str, Reader(_read_dead_letters)]
"""A topic, PIPELINE.dead-letters by default."""
Storage = Annotated[
    StorageSettings, Reader(lambda fields, key, context: read_storage(fields.inner(key), context.storage))
]
"""Connection settings of an object store."""
Positive = Annotated[int, msgspec.Meta(ge=1)]

_READERS: Final[Mapping[Any, Callable[[Fields, str, Any], Any]]] = {
    str: lambda fields, key, default: fields.text(key, default or ""),
    bool: lambda fields, key, default: fields.truth(key, default=bool(default)),
    tuple[str, ...]: lambda fields, key, default: fields.names(key) or default,
    dict[str, str]: lambda fields, key, default: fields.settings(key) or default,
}


class Incomplete(Exception):
    """A required key is missing, or has a value of the wrong type; it is reported."""


def key_types(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The annotated type of each field. Raises ConfigError for one that msgspec cannot read."""
    try:
        msgspec.inspect.type_info(struct)
        hints = get_type_hints(struct, include_extras=True)
    except (NameError, TypeError) as wrong:
        raise ConfigError(
            f"{struct.__module__}.{struct.__qualname__} has a field of an unusable type: {wrong}"
        ) from wrong
    return {name: hints[name] for name in struct.__struct_fields__}


def key_names(struct: type[msgspec.Struct]) -> list[str]:
    """The keys as in the file. Raises ConfigError for a field of an unusable type."""
    key_types(struct)
    return list(struct.__struct_encode_fields__)


def read_keys(
    struct: type[msgspec.Struct], fields: Fields, context: FileContext, *, skipped: tuple[str, ...], what: str
) -> dict[str, Any]:
    """The values of a struct's fields, from the table of the file. Raises Incomplete if it cannot be made."""
    found: dict[str, Any] = {}
    is_complete = True
    types = key_types(struct)
    for each in msgspec.structs.fields(struct):
        if each.name in skipped:
            continue
        if each.required and not fields.has(each.encode_name):
            fields.wrong("", f"{what} needs {each.encode_name}")
            fields.know(each.encode_name)
            is_complete = is_complete and _plain(types[each.name])[0] is str
            found[each.name] = ""
            continue
        try:
            found[each.name] = _read(types[each.name], fields, each, context)
        except Incomplete:
            is_complete = False
    if not is_complete:
        raise Incomplete
    return found


def _read(hint: object, fields: Fields, field: msgspec.structs.FieldInfo, context: FileContext) -> object:
    kind, notes, is_optional = _plain(hint)
    default: Any = None if field.required else _default(field)
    for note in notes:
        if isinstance(note, Reader):
            return note.read(fields, field.encode_name, context)
    key = field.encode_name
    if get_origin(kind) is Literal:
        return fields.one_of(key, get_args(kind), default)
    if kind is int:
        least = next((note.ge for note in notes if isinstance(note, msgspec.Meta) and note.ge is not None), None)
        if least is not None:
            return fields.number(key, default, least=int(least))
    reader = _READERS.get(kind)
    if reader is None:
        value = fields.converted(key, cast("type[object]", hint), default)
        if value is None and field.required and not is_optional:
            raise Incomplete
        return value
    value = reader(fields, key, default)
    return None if is_optional and value in ("", (), {}) else value


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default


def _plain(hint: object) -> tuple[Any, tuple[Any, ...], bool]:
    """A type without annotations and None; its annotations; whether it may be None."""
    is_optional = False
    notes: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            notes += tuple(more)
        elif get_origin(hint) in (Union, UnionType):
            kept = [each for each in get_args(hint) if each is not NoneType]
            is_optional = is_optional or len(kept) < len(get_args(hint))
            if len(kept) > 1:
                return hint, notes, is_optional
            [hint] = kept
        else:
            return hint, notes, is_optional
