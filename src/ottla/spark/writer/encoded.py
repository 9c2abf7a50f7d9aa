"""`option("registry", URL)`: structs as values with schema ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.core.errors import ConfigError
from ottla.spark.errors import SinkError
from ottla.spark.kafka_settings import truth

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from ottla.spark.registry.encoding import Format, RowEncoder

_VALUE: Final = "value"
_ONLY_WITH_REGISTRY: Final = ("subject", "valueformat", "register")


def encoding(schema: StructType, options: Mapping[str, str]) -> tuple[StructType, EncodedValues | None]:
    """The schema of the records as they are written, and the encoder of their values."""
    if not options.get("registry"):
        if given := [name for name in _ONLY_WITH_REGISTRY if name in options]:
            raise ConfigError(f"option {given[0]} needs the option registry")
        return schema, None
    from ottla.schema.registry import Registry
    from ottla.spark.registry.encoding import RowEncoder
    from ottla.spark.registry.spark_types import columns_in_struct

    if _VALUE not in schema.names or not isinstance(kind := schema[_VALUE].dataType, StructType):
        raise SinkError('with registry the column value must be a struct, such as F.struct("*").alias("value")')
    encoder = RowEncoder(
        Registry(options["registry"]),
        _format(options),
        _subject(options),
        columns_in_struct(kind),
        truth("register", options.get("register", "true")),
    )
    encoder.schema()  # fails now if a type cannot be written
    fields = [StructField(_VALUE, BinaryType()) if each.name == _VALUE else each for each in schema.fields]
    return StructType(fields), EncodedValues(encoder)


def _format(options: Mapping[str, str]) -> Format:
    given = options.get("valueformat", "avro").lower()
    if given == "json":
        raise ConfigError("option registry writes Avro and Protobuf; for JSON use to_registry of ottla.spark.registry")
    if given not in ("avro", "protobuf"):
        raise ConfigError(f"valueFormat must be avro or protobuf, got {given!r}")
    return "avro" if given == "avro" else "protobuf"


def _subject(options: Mapping[str, str]) -> str:
    topic = options.get("topic")
    subject = options.get("subject") or (f"{topic}-value" if topic else "")
    if not subject:
        raise ConfigError("option registry needs subject, unless the option topic names one topic")
    return subject


class EncodedValues:
    """Used in tasks; pickled."""

    def __init__(self, encoder: RowEncoder) -> None:
        self._encoder = encoder

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        at = rows.schema.names.index(_VALUE)
        return rows.set_column(at, _VALUE, self._encoder.encode(rows.column(at)))
