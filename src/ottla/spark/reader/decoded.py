"""`option("registry", URL)`: values, and with `keySubject` keys, with schema ids as structs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from ottla.decoding.decoder import ColumnDecoder, NewFields
    from ottla.decoding.schemas import SettledSchema
    from ottla.schema.frames import Part

_PARTS: Final[tuple[Part, ...]] = ("key", "value")
_ONLY_WITH_REGISTRY: Final = ("subject", "keySubject")


def decoded_schema(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The schema of the rows: the types of value and key are those of the subjects' latest versions."""
    if not options.get("registry"):
        if given := [name for name in _ONLY_WITH_REGISTRY if options.get(name.lower())]:
            raise ConfigError(f"option {given[0]} needs the option registry")
        return schema
    from ottla.spark.registry.spark_types import struct_type

    kinds = {part: struct_type(_settled(options, part).columns) for part in _PARTS if _is_decoded(options, part)}
    return StructType([StructField(each.name, kinds.get(each.name, each.dataType)) for each in schema.fields])


def decoding(schema: StructType, options: Mapping[str, str]) -> tuple[StructType, DecodedRecords | None]:
    """The schema of the records as they are read, and the decoder of their keys and values."""
    structs = {each.name: each.dataType for each in schema.fields if isinstance(each.dataType, StructType)}
    if not options.get("registry") or not structs:
        return schema, None
    from ottla.decoding.decoder import ColumnDecoder
    from ottla.schema.registry import Registry
    from ottla.spark.registry.spark_types import columns_in_struct

    mode = options.get("mode", "FAILFAST").upper()
    if mode not in ("FAILFAST", "PERMISSIVE"):
        raise ConfigError(f"option mode must be FAILFAST or PERMISSIVE, got {mode!r}")
    registry = Registry(options["registry"])
    new_fields: NewFields = "ignore" if mode == "PERMISSIVE" else "follow"
    decoders: dict[Part, ColumnDecoder] = {}
    for part in _PARTS:
        if part in structs and _is_decoded(options, part):
            settled = replace(_settled(options, part), columns=columns_in_struct(structs[part]))
            decoders[part] = ColumnDecoder(registry, settled, new_fields, part)
    fields = [StructField(each.name, BinaryType()) if each.name in decoders else each for each in schema.fields]
    return StructType(fields), DecodedRecords(decoders, is_permissive=mode == "PERMISSIVE")


def _is_decoded(options: Mapping[str, str], part: Part) -> bool:
    return part == "value" or bool(options.get("keysubject"))


def _settled(options: Mapping[str, str], part: Part) -> SettledSchema:
    from ottla.decoding.schemas import settle
    from ottla.schema.registry import Registry

    topics = [each.strip() for each in options.get("subscribe", "").split(",") if each.strip()]
    default = f"{topics[0]}-value" if len(topics) == 1 else ""
    subject = options["keysubject"] if part == "key" else options.get("subject") or default
    if not subject:
        raise ConfigError("option registry needs subject, unless subscribe names one topic")
    return settle(Registry(options["registry"]), subject)


class DecodedRecords:
    """Used in tasks. A key or value that cannot be decoded fails the task, or is null."""

    def __init__(self, decoders: dict[Part, ColumnDecoder], *, is_permissive: bool) -> None:
        self._decoders = decoders
        self._is_permissive = is_permissive

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = batch
            for part in self._decoders:
                made = self._decoded(made, part)
            yield made

    def _decoded(self, batch: pa.RecordBatch, part: Part) -> pa.RecordBatch:
        headers = batch.column("headers") if "headers" in batch.schema.names else None
        at = batch.schema.names.index(part)
        rows, errors = self._decoders[part].decode(batch.column(at), headers)
        if not self._is_permissive and errors.null_count < len(errors):
            from ottla.schema.errors import SchemaError

            reason = errors.drop_null()[0].as_py()
            raise SchemaError(f"{part}: {reason}; set option mode to PERMISSIVE to read such values as null")
        return batch.set_column(at, part, rows)
