"""`from_registry` and `to_registry`: column functions for plain Spark programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import BinaryType

from ottla.core.errors import ConfigError
from ottla.decoding.decoder import ColumnDecoder
from ottla.decoding.schemas import settle
from ottla.registry.model import JSON
from ottla.schema.errors import SchemaError
from ottla.schema.frames import HEADERS
from ottla.schema.registry import Registry
from ottla.spark.registry.encoding import RowEncoder
from ottla.spark.registry.spark_types import columns_in_struct, struct_type, without_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from ottla.schema.frames import Part
    from ottla.spark.registry.encoding import Format

Mode = Literal["FAILFAST", "PERMISSIVE"]


def from_registry(
    value: Column | str,
    registry: Registry | str,
    subject: str,
    *,
    mode: Mode = "FAILFAST",
    headers: Column | str | None = None,
    part: Part = "value",
) -> Column:
    """A binary column with schema ids as a struct: the columns of the subject's latest version.

    `mode="PERMISSIVE"` makes null of what cannot be read; otherwise the query fails. `headers` is the column of record
    headers, if ids are in these; `part="key"` says that the column has keys, whose ids are in another header.
    """
    if mode not in ("FAILFAST", "PERMISSIVE"):
        raise ConfigError(f"mode must be FAILFAST or PERMISSIVE, got {mode!r}")
    if part not in HEADERS:
        raise ConfigError(f"part must be key or value, got {part!r}")
    found = Registry.of(registry)
    settled = settle(found, subject)
    column = F.col(value) if isinstance(value, str) else value
    if settled.kind == JSON:
        return F.from_json(without_id(column).cast("string"), struct_type(settled.columns), {"mode": mode})
    decode, decode_with_headers = _decoding(ColumnDecoder(found, settled, "ignore", part), mode)
    kind = struct_type(settled.columns)
    if headers is None:
        return F.arrow_udf(decode, kind)(column)
    return F.arrow_udf(decode_with_headers, kind)(column, F.col(headers) if isinstance(headers, str) else headers)


def _decoding(decoder: ColumnDecoder, mode: Mode) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Without and with headers. Spark reads the types of the functions."""

    def checked(rows: pa.Array, errors: pa.Array) -> pa.Array:
        if mode == "FAILFAST" and errors.null_count < len(errors):
            reason = pc.drop_null(errors)[0].as_py()
            raise SchemaError(f'{reason}; mode="PERMISSIVE" makes null of such values')
        return rows

    def decode(values: pa.Array) -> pa.Array:
        return checked(*decoder.decode(values))

    def decode_with_headers(values: pa.Array, headers: pa.Array) -> pa.Array:
        return checked(*decoder.decode(values, headers))

    return decode, decode_with_headers


def to_registry(
    frame: DataFrame,
    registry: Registry | str,
    subject: str,
    *,
    format: Format = "avro",  # noqa: A002 - as in pipelines
    register: bool = True,
) -> Column:
    """All columns of a frame as one binary column with a schema id.

    The schema of the columns is registered when the first row is written; with `register=False` rows are written with
    the latest version of the subject.
    """
    encoder = RowEncoder(Registry.of(registry), format, subject, columns_in_struct(frame.schema), register)
    return encoded(F.struct(*(F.col(f"`{name}`") for name in frame.columns)), encoder)


def encoded(row: Column, encoder: RowEncoder) -> Column:
    """A struct as a value."""
    encoder.schema()  # says now what cannot be written
    given = F.to_json(row) if encoder.format == "json" else row

    def encode(rows: pa.Array) -> pa.Array:
        return encoder.encode(rows)

    return F.arrow_udf(encode, BinaryType())(given)
