"""`option("registry", URL)`: structs as values and keys with schema ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.core.errors import ConfigError
from ottla.spark.errors import SinkError
from ottla.spark.kafka_settings import truth

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from ottla.schema.frames import Part
    from ottla.spark.registry.encoding import Format, RowEncoder

_SUBJECTS: Final[dict[Part, str]] = {"key": "keySubject", "value": "subject"}
_FORMATS: Final[dict[Part, str]] = {"key": "keyFormat", "value": "valueFormat"}
_KNOWN: Final[dict[str, Format]] = {"avro": "avro", "json": "json", "protobuf": "protobuf"}
_ONLY_WITH_REGISTRY: Final = ("subject", "keySubject", "valueFormat", "keyFormat", "register")


def encoding(schema: StructType, options: Mapping[str, str]) -> tuple[StructType, EncodedRecords | None]:
    """The schema of the records as they are written, and the encoder of their keys and values."""
    if not options.get("registry"):
        if given := [name for name in _ONLY_WITH_REGISTRY if name.lower() in options]:
            raise ConfigError(f"option {given[0]} needs the option registry")
        return schema, None
    structs = {each.name: each.dataType for each in schema.fields if isinstance(each.dataType, StructType)}
    if "value" not in structs:
        raise SinkError('with registry the column value must be a struct, such as F.struct("*").alias("value")')
    encoders = {part: _encoder(part, structs[part], options) for part in _SUBJECTS if part in structs}
    fields = [StructField(each.name, BinaryType()) if each.name in encoders else each for each in schema.fields]
    return StructType(fields), EncodedRecords(encoders)


def _encoder(part: Part, kind: StructType, options: Mapping[str, str]) -> RowEncoder:
    from ottla.schema.registry import Registry
    from ottla.spark.registry.encoding import RowEncoder
    from ottla.spark.registry.spark_types import columns_in_struct

    encoder = RowEncoder(
        Registry(options["registry"]),
        _format(part, options),
        _subject(part, options),
        columns_in_struct(kind),
        truth("register", options.get("register", "true")),
    )
    encoder.schema()  # fails now if a type cannot be written
    return encoder


def _format(part: Part, options: Mapping[str, str]) -> Format:
    given = options.get(_FORMATS[part].lower(), "avro").lower()
    if given not in _KNOWN:
        raise ConfigError(f"{_FORMATS[part]} must be avro, json or protobuf, got {given!r}")
    return _KNOWN[given]


def _subject(part: Part, options: Mapping[str, str]) -> str:
    topic = options.get("topic")
    subject = options.get(_SUBJECTS[part].lower()) or (f"{topic}-{part}" if topic else "")
    if not subject:
        raise ConfigError(f"option registry needs {_SUBJECTS[part]}, unless the option topic names one topic")
    return subject


class EncodedRecords:
    """Used in tasks; pickled."""

    def __init__(self, encoders: dict[Part, RowEncoder]) -> None:
        self._encoders = encoders

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        for part, encoder in self._encoders.items():
            at = rows.schema.names.index(part)
            rows = rows.set_column(at, part, encoder.encode(rows.column(at)))
        return rows
