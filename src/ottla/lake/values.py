"""How values become columns: raw, JSON with declared columns, or by a schema registry."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol
from urllib.parse import urlsplit

import pyarrow as pa

from ottla.columns.ddl import parse_columns
from ottla.columns.types import Struct, struct_of
from ottla.core.errors import ConfigError
from ottla.lake.system_columns import VALUE, column_name

if TYPE_CHECKING:
    from collections.abc import Sequence

ValueFormat = Literal["raw", "json", "registry"]
FORMATS: Final[tuple[ValueFormat, ...]] = ("raw", "json", "registry")
_RAW: Final = struct_of([(VALUE, "binary")])


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSettings:
    format: ValueFormat = "raw"
    columns: str = ""
    """Of JSON, as Spark's DDL: `id bigint, tags array<string>`."""
    registry: str = ""
    """The URL of the schema registry."""
    subject: str = ""

    def text(self) -> str:
        """As the property `names.VALUES` of a table: what is set, without the password of the registry."""
        given = {**asdict(self), "registry": _without_login(self.registry)}
        return json.dumps({name: value for name, value in given.items() if value}, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> ValueSettings:
        return cls(**json.loads(text))

    def check(self) -> None:
        if self.format == "json" and not self.columns:
            raise ConfigError("JSON values need columns, for example: id bigint, name string, at timestamp")
        if self.format != "json" and self.columns:
            raise ConfigError(f"columns are declared for JSON values only, and the format is {self.format}")
        if self.format == "registry" and not self.registry:
            raise ConfigError("values by schema ids need the URL of the schema registry")


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class ValueDecoder(Protocol):
    columns: Struct
    """Of the table, beside the system columns."""
    has_errors: bool
    """Whether some values may not decode."""

    def decode(self, records: pa.RecordBatch) -> tuple[Sequence[pa.Array], pa.Array]:
        """The columns, and why each value that could not be decoded was not; null for the others."""


def decoder_for(settings: ValueSettings, topic: str) -> ValueDecoder:
    settings.check()
    if settings.format == "raw":
        return _Raw()
    if settings.format == "json":
        from ottla.decoding.json_values import JsonDecoder

        columns = parse_columns(settings.columns)
        return _Structs(JsonDecoder(columns), columns)
    return _registered(settings, settings.subject or f"{topic}-value")


class _Raw:
    columns = _RAW
    has_errors = False

    def decode(self, records: pa.RecordBatch) -> tuple[Sequence[pa.Array], pa.Array]:
        return [records.column("value")], pa.nulls(records.num_rows, pa.string())


class _Decoder(Protocol):
    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> tuple[pa.Array, pa.Array]:
        """The rows, and why each value could not be decoded."""


class _Structs:
    has_errors = True

    def __init__(self, decoder: _Decoder, columns: Struct) -> None:
        self._decoder = decoder
        self.columns = struct_of((column_name(each.name), each.type) for each in columns.fields)

    def decode(self, records: pa.RecordBatch) -> tuple[Sequence[pa.Array], pa.Array]:
        rows, errors = self._decoder.decode(records.column("value"), records.column("headers"))
        return rows.flatten(), errors


def _registered(settings: ValueSettings, subject: str) -> _Structs:
    from ottla.decoding.decoder import ColumnDecoder
    from ottla.decoding.schemas import settle
    from ottla.schema.registry import Registry

    registry = Registry(settings.registry)
    settled = settle(registry, subject)
    return _Structs(ColumnDecoder(registry, settled, "follow"), settled.columns)
