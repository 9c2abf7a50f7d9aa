"""Values with schema ids as struct arrays of Arrow, in Spark's workers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ottla.columns.arrow_types import arrow_schema
from ottla.core.errors import OttlaError
from ottla.decoding.columns import news
from ottla.decoding.programs import JsonProgram, program
from ottla.decoding.schemas import SettledSchema, columns_in
from ottla.registry.model import AVRO, JSON
from ottla.schema.errors import RegistryUnavailable, SchemaError
from ottla.schema.frames import HEADERS, SchemaId, header_indexes, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.columns.types import Struct
    from ottla.decoding.programs import Program
    from ottla.schema.frames import Part
    from ottla.schema.registry import Registry

NewFields = Literal["follow", "ignore"]
PREFIX_BYTES: Final = 5
GUID_PREFIX_BYTES: Final = 17


class NewSchema(OttlaError):
    """A value was written with a newer schema that has more fields than the columns."""


def may_be_newer(wanted: SchemaId, settled: SettledSchema) -> bool:
    return wanted.number is None or wanted.number > settled.id


def refuse_new_fields(wanted: SchemaId, columns: Struct, newer: Struct) -> None:
    if more := news(columns, newer):
        raise NewSchema(
            f"the schema with {wanted} has fields that the columns lack: {', '.join(more)}; start the query again to "
            'take them over, or set new_fields = "ignore"'
        )


class ColumnDecoder:
    """By the schema that the id of each key or value names, into the columns of the settled one. Goes to workers by
    pickle.
    """

    def __init__(self, registry: Registry, settled: SettledSchema, new_fields: NewFields, part: Part = "value") -> None:
        self.registry = registry
        self.settled = settled
        self._new_fields = new_fields
        self._part = part

    def __getstate__(self) -> dict[str, Any]:
        kept = ("registry", "settled", "_new_fields", "_part")
        return {name: value for name, value in self.__dict__.items() if name in kept}

    @cached_property
    def arrow_type(self) -> pa.DataType:
        return pa.struct(list(arrow_schema(self.settled.columns)))

    @cached_property
    def _programs(self) -> dict[SchemaId, Program | SchemaError]:
        return {}

    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> tuple[pa.Array, pa.Array]:
        """The rows, and why each value that is not one could not be read; both null where a value is null."""
        if not pa.types.is_binary(values.type):
            values = values.cast(pa.binary())
        prefixes = _prefixes(values)
        groups = []
        if headers is not None and _have_ids(headers, HEADERS[self._part]):
            in_headers = pc.if_else(pc.is_valid(values), _header_ids(headers, HEADERS[self._part]), None)
            prefixes = pc.if_else(pc.is_null(in_headers), prefixes, None)
            groups = self._groups(values, in_headers, are_headers=True)
        groups += self._groups(values, prefixes)
        if len(groups) == 1 and len(groups[0][0]) == len(values):
            return groups[0][1:]
        return self._put_together(groups, len(values))

    def _groups(
        self, values: pa.Array, ids: pa.Array, *, are_headers: bool = False
    ) -> list[tuple[pa.Array, pa.Array, pa.Array]]:
        """The places, rows and errors of the values of each schema."""
        encoded = ids.dictionary_encode()
        found = encoded.dictionary.to_pylist()
        if len(found) == 1 and not ids.null_count:
            return [(ids, *self._decode_group(found[0], values, is_header=are_headers))]
        groups = []
        for number, each in enumerate(found):
            at = pc.indices_nonzero(pc.fill_null(pc.equal(encoded.indices, number), fill_value=False))
            groups.append((at, *self._decode_group(each, values.take(at), is_header=are_headers)))
        return groups

    def _decode_group(self, given: bytes, values: pa.Array, *, is_header: bool) -> tuple[pa.Array, pa.Array]:
        """Values with the same id: before their data, or in a header."""
        headers = ((HEADERS[self._part], given),) if is_header else ()
        try:
            wanted, begin = split(given, self._part, headers)
            return self._program(wanted).decode(values, begin, header_indexes(self._part, headers))
        except SchemaError as wrong:
            return self._nothing(len(values), str(wrong))

    def _put_together(self, groups: list[tuple[pa.Array, pa.Array, pa.Array]], count: int) -> tuple[pa.Array, pa.Array]:
        if not groups:
            return pa.nulls(count, self.arrow_type), pa.nulls(count, pa.string())
        order = pa.concat_arrays([rows for rows, _, _ in groups])
        places = pa.nulls(count, pa.int64()).to_numpy(zero_copy_only=False)
        places[order.to_numpy()] = range(len(order))
        index = pa.array(places, pa.int64(), from_pandas=True)
        return (
            pa.concat_arrays([each for _, each, _ in groups]).take(index),
            pa.concat_arrays([each for _, _, each in groups]).take(index),
        )

    def _nothing(self, count: int, reason: str) -> tuple[pa.Array, pa.Array]:
        return pa.nulls(count, self.arrow_type), pa.array([reason] * count, pa.string())

    def _program(self, wanted: SchemaId) -> Program:
        found = self._programs.get(wanted)
        if found is None:
            try:
                found = self._made(wanted)
            except (NewSchema, RegistryUnavailable):
                raise
            except OttlaError as refused:
                found = SchemaError(str(refused))
            self._programs[wanted] = found
        if isinstance(found, SchemaError):
            raise found
        return found

    def _made(self, wanted: SchemaId) -> Program:
        schema = self.registry.schema(wanted)
        if schema.type != self.settled.kind:
            raise SchemaError(f"the schema with {wanted} is {schema.type}, not {self.settled.kind}")
        if self._new_fields == "follow" and may_be_newer(wanted, self.settled):
            refuse_new_fields(wanted, self.settled.columns, columns_in(self.registry, schema))
        if schema.type == JSON:
            return JsonProgram(self.settled.columns)
        latest = self.registry.schema(SchemaId(number=self.settled.id)) if schema.type == AVRO else schema
        return program(self.registry, schema, latest, self.arrow_type)


def _prefixes(values: pa.Array) -> pa.Array:
    """The bytes of each value in which its schema id is."""
    is_guid = pc.equal(pc.binary_slice(values, 0, 1), pa.scalar(b"\1"))
    prefixes = pc.binary_slice(values, 0, PREFIX_BYTES)
    if not pc.any(is_guid).as_py():
        return prefixes
    return pc.if_else(is_guid, pc.binary_slice(values, 0, GUID_PREFIX_BYTES), prefixes)


def _have_ids(headers: pa.Array, name: str) -> bool:
    names = headers.flatten().field("key")
    return bool(len(names)) and bool(pc.any(pc.equal(names, name)).as_py())


def _header_ids(headers: pa.Array, name: str) -> pa.Array:
    found = [
        next((each["value"] for each in row or () if each["key"] == name and each["value"] is not None), None)
        for row in headers.to_pylist()
    ]
    return pa.array(found, pa.binary())


class RegistryDecoder:
    """A step for mapInArrow: adds `_parsed` and `_error` to the records it is given."""

    def __init__(self, decoder: ColumnDecoder) -> None:
        self._decoder = decoder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            headers = batch.column("headers") if "headers" in batch.schema.names else None
            parsed, errors = self._decoder.decode(batch.column("value"), headers)
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, parsed, errors], [*batch.schema.names, "_parsed", "_error"]
            )
