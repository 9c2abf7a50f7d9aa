"""Values with schema ids as struct arrays of Arrow, in Spark's workers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ottla.columns.arrow_types import arrow_schema
from ottla.core.errors import OttlaError
from ottla.decoding.columns import news
from ottla.decoding.programs import program
from ottla.decoding.schemas import SettledSchema, columns_in
from ottla.registry.model import AVRO
from ottla.schema.errors import RegistryUnavailable, SchemaError
from ottla.schema.frames import HEADERS, SchemaId, header_indexes, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.columns.types import Struct
    from ottla.decoding.programs import Program
    from ottla.schema.registry import Registry

NewFields = Literal["follow", "ignore"]
PREFIX_BYTES: Final = 5


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
    """By the schema that the id of each value names, into the columns of the settled one. Goes to workers by pickle."""

    def __init__(self, registry: Registry, settled: SettledSchema, new_fields: NewFields) -> None:
        self.registry = registry
        self.settled = settled
        self._new_fields = new_fields

    def __getstate__(self) -> dict[str, Any]:
        kept = ("registry", "settled", "_new_fields")
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
        if headers is not None and _have_ids(headers):
            return self._decode_with_headers(values, headers)
        prefixes = pc.binary_slice(values, 0, PREFIX_BYTES).dictionary_encode()
        found = prefixes.dictionary.to_pylist()
        if len(found) == 1 and not values.null_count:
            return self._decode_group(found[0], values)
        groups = []
        for number, prefix in enumerate(found):
            rows = pc.indices_nonzero(pc.fill_null(pc.equal(prefixes.indices, number), fill_value=False))
            groups.append((rows, *self._decode_group(prefix, values.take(rows))))
        return self._put_together(groups, len(values))

    def _decode_group(self, prefix: bytes, values: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Values with the same first bytes; a GUID is longer than these, and is read of each."""
        if prefix[:1] == b"\1":
            return self._decode_each(values, [()] * len(values))
        try:
            wanted, begin = split(prefix, "value")
            return self._program(wanted).decode(values, begin)
        except SchemaError as wrong:
            return self._nothing(len(values), str(wrong))

    def _decode_each(self, values: pa.Array, headers: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
        groups = []
        for at, (value, given) in enumerate(zip(values.to_pylist(), headers, strict=True)):
            if value is None:
                continue
            try:
                wanted, begin = split(value, "value", given)
                read = self._program(wanted)
                indexes = header_indexes("value", given)
                row, error = read.decode(values.slice(at, 1), begin, indexes)
            except SchemaError as wrong:
                row, error = self._nothing(1, str(wrong))
            groups.append((pa.array([at], pa.uint64()), row, error))
        return self._put_together(groups, len(values))

    def _decode_with_headers(self, values: pa.Array, headers: pa.Array) -> tuple[pa.Array, pa.Array]:
        given = [[(each["key"], each["value"]) for each in row or ()] for row in headers.to_pylist()]
        return self._decode_each(values, given)

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
        latest = self.registry.schema(SchemaId(number=self.settled.id)) if schema.type == AVRO else schema
        return program(self.registry, schema, latest, self.arrow_type)


def _have_ids(headers: pa.Array) -> bool:
    names = headers.flatten().field("key")
    return bool(len(names)) and bool(pc.any(pc.equal(names, HEADERS["value"])).as_py())


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
