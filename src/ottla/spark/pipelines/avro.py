"""Avro values as columns, in Spark's workers: plain, with the prefix of a schema registry, or each a container file."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Final

from ottla.columns.arrow_types import arrow_schema
from ottla.columns.types import columns_of
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_CONTAINER: Final = b"Obj\x01"
_FRAME_BYTES: Final = 5
_MAGIC: Final = 0


class AvroDecoder:
    """A step for mapInArrow: adds `_parsed` and `_error` to the records."""

    def __init__(self, schema: str, ddl: str, *, is_framed: bool) -> None:
        self._schema = schema
        self._ddl = ddl
        self._is_framed = is_framed
        self._arrow_type: pa.DataType | None = None

    def output_ddl(self, raw: DataFrame) -> StructType:
        import pyarrow as pa
        from pyspark.sql.types import StringType, StructField, StructType

        record = StructType.fromDDL(self._ddl)
        self._arrow_type = pa.struct(list(arrow_schema(columns_of(record.jsonValue()))))
        return StructType([*raw.schema.fields, StructField("_parsed", record), StructField("_error", StringType())])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        decode = self._decoder()
        for batch in batches:
            rows: list[dict[str, Any] | None] = []
            errors: list[str | None] = []
            for value in batch.column("value").to_pylist():
                row, error = decode(value)
                rows.append(row)
                errors.append(error)
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, pa.array(rows, self._arrow_type), pa.array(errors, pa.string())],
                [*batch.schema.names, "_parsed", "_error"],
            )

    def _decoder(self) -> Callable[[bytes | None], tuple[dict[str, Any] | None, str | None]]:
        fastavro = imported_fastavro()
        import pyarrow as pa

        schema = fastavro.parse_schema(_without_uuids(json.loads(self._schema)))

        def decode(value: bytes | None) -> tuple[dict[str, Any] | None, str | None]:
            if value is None:
                return None, None
            try:
                row = self._read(fastavro, schema, value)
                pa.array([row], self._arrow_type)
            except Exception as wrong:  # noqa: BLE001 - whatever bytes make of it must not stop the job
                return None, f"not Avro of this schema: {type(wrong).__name__} {wrong}".strip()
            return row, None

        return decode

    def _read(self, fastavro: ModuleType, schema: object, value: bytes) -> dict[str, Any]:
        if value.startswith(_CONTAINER):
            [row] = fastavro.reader(io.BytesIO(value), reader_schema=schema)
            return row  # type: ignore[no-any-return]
        if self._is_framed:
            if len(value) < _FRAME_BYTES or value[0] != _MAGIC:
                raise ValueError("it does not begin with the id of a schema registry")
            value = value[_FRAME_BYTES:]
        rest = io.BytesIO(value)
        row = fastavro.schemaless_reader(rest, schema, None)
        if rest.tell() != len(value):
            raise ValueError(f"{len(value) - rest.tell()} bytes are left over")
        return row  # type: ignore[no-any-return]


def container_schema(value: bytes) -> str | None:
    """The schema in a container file."""
    if not value.startswith(_CONTAINER):
        return None
    return json.dumps(imported_fastavro().reader(io.BytesIO(value)).writer_schema)


def imported_fastavro() -> ModuleType:
    try:
        import fastavro
    except ImportError:
        raise ConfigError("Avro needs the package fastavro; run: pip install 'ottla[pipelines]'") from None
    module: ModuleType = fastavro
    return module


def _without_uuids(schema: object) -> object:
    """An Avro schema in which UUIDs are strings, as they are in a column."""
    if isinstance(schema, dict):
        return {key: _without_uuids(each) for key, each in schema.items() if each != "uuid" or key != "logicalType"}
    return [_without_uuids(each) for each in schema] if isinstance(schema, list) else schema
