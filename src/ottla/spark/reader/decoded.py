"""`option("registry", URL)`: values with schema ids as structs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from ottla.decoding.decoder import ColumnDecoder
    from ottla.decoding.schemas import SettledSchema

_VALUE = "value"


def decoded_schema(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The schema of the rows: the type of the value is that of the subject's latest version."""
    if not options.get("registry"):
        return schema
    from ottla.spark.registry.spark_types import struct_type

    kind = struct_type(_settled(options).columns)
    return StructType([StructField(_VALUE, kind) if each.name == _VALUE else each for each in schema.fields])


def decoding(schema: StructType, options: Mapping[str, str]) -> tuple[StructType, DecodedValues | None]:
    """The schema of the records as they are read, and the decoder of their values."""
    if not options.get("registry") or _VALUE not in schema.names or not isinstance(schema[_VALUE].dataType, StructType):
        return schema, None
    from ottla.decoding.decoder import ColumnDecoder
    from ottla.schema.registry import Registry
    from ottla.spark.registry.spark_types import columns_in_struct

    mode = options.get("mode", "FAILFAST").upper()
    if mode not in ("FAILFAST", "PERMISSIVE"):
        raise ConfigError(f"option mode must be FAILFAST or PERMISSIVE, got {mode!r}")
    settled = replace(_settled(options), columns=columns_in_struct(schema[_VALUE].dataType))
    decoder = ColumnDecoder(Registry(options["registry"]), settled, "ignore" if mode == "PERMISSIVE" else "follow")
    fields = [StructField(_VALUE, BinaryType()) if each.name == _VALUE else each for each in schema.fields]
    return StructType(fields), DecodedValues(decoder, is_permissive=mode == "PERMISSIVE")


def _settled(options: Mapping[str, str]) -> SettledSchema:
    from ottla.decoding.schemas import settle
    from ottla.schema.registry import Registry

    topics = [each.strip() for each in options.get("subscribe", "").split(",") if each.strip()]
    subject = options.get("subject") or (f"{topics[0]}-value" if len(topics) == 1 else "")
    if not subject:
        raise ConfigError("option registry needs subject, unless subscribe names one topic")
    found = settle(Registry(options["registry"]), subject)
    if found.kind == "JSON":
        raise ConfigError("option registry reads Avro and Protobuf; for JSON use from_registry of ottla.spark.registry")
    return found


class DecodedValues:
    """Used in tasks. A value that cannot be decoded fails the task, or is null."""

    def __init__(self, decoder: ColumnDecoder, *, is_permissive: bool) -> None:
        self._decoder = decoder
        self._is_permissive = is_permissive

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            headers = batch.column("headers") if "headers" in batch.schema.names else None
            at = batch.schema.names.index(_VALUE)
            rows, errors = self._decoder.decode(batch.column(at), headers)
            if not self._is_permissive and errors.null_count < len(errors):
                from ottla.schema.errors import SchemaError

                reason = errors.drop_null()[0].as_py()
                raise SchemaError(f"{reason}; set option mode to PERMISSIVE to read such values as null")
            yield batch.set_column(at, _VALUE, rows)
