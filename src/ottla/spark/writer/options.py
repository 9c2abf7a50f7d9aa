"""Options and columns of the sink, as in Spark's Kafka connector. Pure rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructType, TimestampType

from ottla.core.errors import ConfigError
from ottla.records.compression import Compression
from ottla.spark.errors import SinkError
from ottla.spark.kafka_settings import truth, whole_number
from ottla.spark.reader.options import kafka_settings
from ottla.spark.writer.encoded import encoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import DataType

    from ottla.spark.writer.encoded import EncodedRecords

_TEXT_OR_BYTES: Final = (StringType, BinaryType)
_TYPES: Final[dict[str, tuple[type[DataType], ...]]] = {
    "key": _TEXT_OR_BYTES,
    "value": _TEXT_OR_BYTES,
    "topic": (StringType,),
    "partition": (IntegerType,),
    "headers": (ArrayType,),
    "timestamp": (TimestampType,),
}
_SMALLEST_BATCH_BYTES: Final = 1024
_LONGEST_TRANSACTION_MS: Final = "900000"
"""The brokers' default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    kafka: dict[str, str]
    topic: str | None
    compression: Compression
    max_batch_bytes: int
    delivery_timeout_s: float
    transactional: bool
    transaction_timeout_ms: int
    deduplicate: bool
    columns: tuple[str, ...]
    """The columns of the sink that the rows have."""
    write_id: str | None = None
    """The name of a batch write: repeated after a crash of the driver, it is completed and not duplicated."""
    encode: EncodedRecords | None = None
    """Encodes structs as values, with the option registry."""


def parse_sink(given: Mapping[str, str], schema: StructType) -> SinkOptions:
    options = {name.lower(): value for name, value in given.items()}
    kafka = kafka_settings(options)
    topic = options.get("topic") or None
    compression = kafka.get("compression.type", "none")
    transactional = truth("transactional", options.get("transactional", "true"))
    schema, encode = encoding(schema, options)
    if compression.upper() not in Compression.__members__:
        raise ConfigError(f"kafka.compression.type must be none, gzip, snappy, lz4 or zstd, got {compression}")
    return SinkOptions(
        kafka=kafka,
        topic=topic,
        compression=Compression[compression.upper()],
        max_batch_bytes=whole_number(
            "kafka.max.request.size", kafka.get("max.request.size", "1048576"), least=_SMALLEST_BATCH_BYTES
        ),
        delivery_timeout_s=whole_number("kafka.delivery.timeout.ms", kafka.get("delivery.timeout.ms", "120000")) / 1000,
        transactional=transactional,
        transaction_timeout_ms=whole_number(
            "kafka.transaction.timeout.ms", kafka.get("transaction.timeout.ms", _LONGEST_TRANSACTION_MS)
        ),
        deduplicate=truth("deduplicate", options.get("deduplicate", "true")),
        columns=_checked_columns(schema, topic),
        write_id=_write_id(options.get("writeid"), transactional=transactional),
        encode=encode,
    )


def _write_id(given: str | None, *, transactional: bool) -> str | None:
    if given is None:
        return None
    if not given:
        raise ConfigError("writeId must not be empty")
    if not transactional:
        raise ConfigError("writeId needs transactions; remove it, or transactional=false")
    return given


def _checked_columns(schema: StructType, topic: str | None) -> tuple[str, ...]:
    there = {field.name: field.dataType for field in schema.fields if field.name in _TYPES}
    if "value" not in there:
        raise SinkError(f"a sink needs a column named value, of bytes or text; there are {', '.join(schema.names)}")
    if topic is None and "topic" not in there:
        raise SinkError("a sink needs the option topic, or a column named topic")
    for name, kind in there.items():
        if not isinstance(kind, _TYPES[name]):
            wanted = " or ".join(each.typeName() for each in _TYPES[name])
            raise SinkError(f"the column {name} must be of type {wanted}, not {kind.simpleString()}")
    if "headers" in there and there["headers"].simpleString() != "array<struct<key:string,value:binary>>":
        raise SinkError(
            f"the column headers must be array<struct<key:string,value:binary>>, not {there['headers'].simpleString()}"
        )
    return tuple(name for name in there if name != "topic" or topic is None)
