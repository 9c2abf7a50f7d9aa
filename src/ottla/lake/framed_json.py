"""JSON values with schema ids: the id is cut off, and new fields of newer schemas are noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ottla.core.errors import OttlaError
from ottla.decoding.columns import news
from ottla.decoding.decoder import PREFIX_BYTES, NewSchema
from ottla.decoding.schemas import columns_in
from ottla.schema.errors import RegistryUnavailable, SchemaError
from ottla.schema.frames import SchemaId, split

if TYPE_CHECKING:
    from ottla.decoding.json_values import JsonDecoder
    from ottla.decoding.schemas import SettledSchema
    from ottla.schema.registry import Registry


class FramedJson:
    def __init__(self, decoder: JsonDecoder, registry: Registry, settled: SettledSchema) -> None:
        self._decoder = decoder
        self._registry = registry
        self._settled = settled
        self._reasons: dict[bytes, str | None] = {}
        """By the first bytes of a value: why such values cannot be decoded."""

    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> tuple[pa.Array, pa.Array]:  # noqa: ARG002
        prefixes = pc.binary_slice(values, 0, PREFIX_BYTES).dictionary_encode()
        reasons = pa.array([self._reason(each) for each in prefixes.dictionary.to_pylist()], pa.string())
        framed = reasons.take(prefixes.indices)
        is_good = pc.is_null(framed)
        bodies = pc.if_else(is_good, pc.binary_slice(values, PREFIX_BYTES, None), pa.scalar(None, values.type))
        rows, errors = self._decoder.decode(bodies)
        return rows, pc.coalesce(framed, errors)

    def _reason(self, prefix: bytes) -> str | None:
        if prefix not in self._reasons:
            try:
                self._check(split(prefix, "value")[0])
                self._reasons[prefix] = None
            except (NewSchema, RegistryUnavailable):
                raise
            except OttlaError as wrong:
                self._reasons[prefix] = str(wrong)
        return self._reasons[prefix]

    def _check(self, wanted: SchemaId) -> None:
        if wanted.number is None:
            raise SchemaError("values with GUIDs of schemas are not supported for JSON")
        schema = self._registry.schema(wanted)
        if schema.type != self._settled.kind:
            raise SchemaError(f"the schema with {wanted} is {schema.type}, not {self._settled.kind}")
        if wanted.number > self._settled.id:
            more = news(self._settled.columns, columns_in(self._registry, schema))
            if more:
                raise NewSchema(f"the schema with {wanted} has fields that the columns lack: {', '.join(more)}")
