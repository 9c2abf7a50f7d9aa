"""Schemas of JSON values that have new fields. Spark's own parser reads the values, and ignores these."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import BooleanType

from ottla.core.errors import OttlaError
from ottla.decoding.decoder import may_be_newer, refuse_new_fields
from ottla.decoding.schemas import SettledSchema, columns_in
from ottla.registry.model import JSON
from ottla.schema.errors import RegistryUnavailable
from ottla.schema.frames import HEADERS, SchemaId, split

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    from ottla.columns.types import Struct
    from ottla.schema.registry import Registry


class FieldGuard:
    """Raises NewSchema at the id of a newer schema that has more fields. Goes to workers by pickle."""

    def __init__(self, registry: Registry, settled: SettledSchema) -> None:
        self._registry = registry
        self._settled = settled

    def __getstate__(self) -> dict[str, Any]:
        return {"_registry": self._registry, "_settled": self._settled}

    @cached_property
    def _known(self) -> set[bytes | None]:
        return {None}

    def check(self, ids: pa.Array) -> None:
        """Schema ids as they precede values. An id of no schema, or of another type, has no fields."""
        for each in ids.unique().to_pylist():
            if each not in self._known:
                self._check(each)
                self._known.add(each)

    def _check(self, data: bytes) -> None:
        try:
            wanted, _ = split(data, "value")
            columns = self._columns(wanted) if may_be_newer(wanted, self._settled) else None
        except RegistryUnavailable:
            raise
        except OttlaError:
            return
        if columns is not None:
            refuse_new_fields(wanted, self._settled.columns, columns)

    def _columns(self, wanted: SchemaId) -> Struct | None:
        schema = self._registry.schema(wanted)
        return columns_in(self._registry, schema) if schema.type == JSON else None


def has_known_fields(guard: FieldGuard, value: Column, headers: Column | None) -> Column:
    """True; the query fails at a schema with new fields."""
    framed = value
    if headers is not None:
        with_ids = F.filter(headers, lambda each: each["key"] == HEADERS["value"])
        framed = F.coalesce(F.get(with_ids, F.lit(0))["value"], value)
    first = F.substring(framed, 1, 1)
    ids = F.when(first == F.lit(bytearray(b"\0")), F.substring(framed, 1, 5)).when(
        first == F.lit(bytearray(b"\1")), F.substring(framed, 1, 17)
    )
    return F.arrow_udf(_checking(guard), BooleanType())(ids)


def _checking(guard: FieldGuard) -> Callable[..., Any]:
    """Spark reads the types of the function."""

    def check(ids: pa.Array) -> pa.Array:
        guard.check(ids)
        return pa.repeat(pa.scalar(value=True), len(ids))

    return check
