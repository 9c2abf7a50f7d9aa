"""Records as rows: those that parse with their columns, those that do not with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ottla.spark.pipelines.avro import AvroDecoder
from ottla.spark.pipelines.avro_schema import avro_ddl
from ottla.spark.pipelines.changes.debezium import DebeziumFault
from ottla.spark.pipelines.changes.debezium_rows import DebeziumRows
from ottla.spark.pipelines.changes.record_keys import key_columns
from ottla.spark.pipelines.changes.rules import DELETED
from ottla.spark.pipelines.ddl import columns, quoted
from ottla.spark.pipelines.faults import CsvFault, JsonFault
from ottla.spark.pipelines.known_columns import known_columns
from ottla.spark.pipelines.letters.rules import BLOCK
from ottla.spark.pipelines.limits import MOST_HEADER_BYTES, MOST_KEY_BYTES, MOST_VALUE_BYTES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.spark.pipelines.definition import Source

_CORRUPT: Final = "_corrupt"
_PARSED: Final = "_parsed"
_ERROR: Final = "_error"
_TASK: Final = "_task"
_PARSED_ONCE: Final = f"{_TASK} >= 0"
"""Always true. Spark would push filters below the parsing, and parse once more for each; it pushes none below a
column that may differ when it is computed again."""
_HEADERS: Final = "array<struct<key:string,value:binary>>"
_NO_VALUE: Final = "the record has no value"
_META: Final = {
    "_key": "key",
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
}


def good_rows(raw: DataFrame, source: Source, metric: str | None = None) -> DataFrame:
    """The records that parse: their own columns, and where they come from.

    With `metric`, the query reports under this name the number of records and the blocks of offsets with bad ones.
    """
    meta = [F.col(column).alias(name) for name, column in _META.items()]
    if source.format == "raw":
        return raw.select("key", "value", "headers", *meta)
    parsed = _with_parsed(raw, source).where(_PARSED_ONCE)
    if metric is not None:
        parsed = _observed(parsed, source, metric)
    parsed = parsed.where(~_is_bad(source))
    if source.nulls == "skip":
        parsed = parsed.where(F.col("value").isNotNull())
    if source.format == "debezium":
        return parsed.select(*DebeziumRows(source, _PARSED).columns(), *meta)
    if source.has_deletes:
        return parsed.select(*_with_deletes(source), *meta)
    if source.format == "avro":
        return parsed.select(f"{_PARSED}.*", *meta)
    return parsed.select(f"{_PARSED}.*", *meta).drop(_CORRUPT)


def _observed(parsed: DataFrame, source: Source, metric: str) -> DataFrame:
    block = F.concat_ws("/", "topic", "partition", F.expr(f"offset DIV {BLOCK}"))
    return parsed.observe(
        metric,
        F.count(F.lit(1)).alias("rows"),
        F.collect_set(F.when(_is_bad(source), block)).alias("blocks"),
    )


def _with_deletes(source: Source) -> list[Column]:
    """A record without a value is a row of its key that deletes."""
    types = known_columns(source) or {}
    is_deleted = F.col("value").isNull()
    keys = key_columns({name: types[name] for name in source.key})
    row = {name: F.col(f"{_PARSED}.{quoted(name)}") for name in types}
    row |= {name: F.when(is_deleted, key).otherwise(row[name]) for name, key in keys.items()}
    return [*(column.alias(name) for name, column in row.items()), is_deleted.alias(DELETED)]


def bad_rows(raw: DataFrame, source: Source, pipeline: str) -> DataFrame:
    """The records that do not parse, as they came, with the reason and their origin in headers."""
    bad = _with_parsed(raw, source).where(_PARSED_ONCE).where(_is_bad(source))
    told = {
        "ottla.error": _reason(source),
        "ottla.pipeline": F.lit(pipeline),
        "ottla.topic": F.col("topic"),
        "ottla.partition": F.col("partition").cast("string"),
        "ottla.offset": F.col("offset").cast("string"),
        "ottla.timestamp": F.unix_millis("timestamp").cast("string"),
    }
    cut = {
        "ottla.value-bytes": F.when(F.length("value") > MOST_VALUE_BYTES, F.length("value")),
        "ottla.key-bytes": F.when(F.length("key") > MOST_KEY_BYTES, F.length("key")),
    }
    headers = F.array(*(_header(name, value) for name, value in told.items()))
    more = F.filter(F.array(*(_header(name, size.cast("string")) for name, size in cut.items())), _has_value)
    own = F.coalesce(F.col("headers"), F.array().cast(_HEADERS))
    own_bytes = F.aggregate(own, F.lit(0), lambda sum_, each: sum_ + F.length(each["key"]) + _length(each["value"]))
    kept = F.when(own_bytes <= MOST_HEADER_BYTES, own).otherwise(F.array().cast(_HEADERS))
    return bad.select(
        F.substring("key", 1, MOST_KEY_BYTES).alias("key"),
        F.substring("value", 1, MOST_VALUE_BYTES).alias("value"),
        F.concat(kept, headers.cast(_HEADERS), more.cast(_HEADERS)).alias("headers"),
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _has_value(header: Column) -> Column:
    return header["value"].isNotNull()


def _length(value: Column) -> Column:
    return F.coalesce(F.length(value), F.lit(0))


def _with_parsed(raw: DataFrame, source: Source) -> DataFrame:
    schema = source.schema or ""
    if source.format == "avro":
        decoder = AvroDecoder(schema, avro_ddl(schema), is_framed=source.framing == "confluent")
        return raw.mapInArrow(decoder, decoder.output_ddl(raw)).withColumn(_TASK, F.lit(0))
    options = {**source.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if source.format == "debezium":
        schema = DebeziumRows(source, _PARSED).ddl
    parse = F.from_csv if source.format == "csv" else F.from_json
    text = F.col("value").cast("string")
    parsed = parse(text, f"{schema}, {_CORRUPT} string", options)
    return raw.withColumns({_PARSED: parsed, _TASK: F.spark_partition_id()})


def _fails(source: Source) -> Column:
    if source.format == "avro":
        return F.col(_ERROR).isNotNull()
    fails = F.col(_PARSED).isNull() | F.col(f"{_PARSED}.{_CORRUPT}").isNotNull()
    return fails | DebeziumRows(source, _PARSED).is_no_change() if source.format == "debezium" else fails


def _is_bad(source: Source) -> Column:
    fails = _fails(source)
    has_value = F.col("value").isNotNull()
    is_bad = (has_value & fails) | ~has_value if source.nulls == "dead-letter" else has_value & fails
    if source.max_event_time_ahead_ms is not None:
        is_bad = is_bad | _is_ahead(source, source.max_event_time_ahead_ms)
    return F.coalesce(is_bad, F.lit(False))  # noqa: FBT003 - a literal of Spark's


def _event_time(source: Source) -> Column:
    if source.format == "debezium":
        return DebeziumRows(source, _PARSED).new_value(source.event_time or "").cast("timestamp")
    return F.col(f"{_PARSED}.`{source.event_time}`").cast("timestamp")


def _is_ahead(source: Source, most_ms: int) -> Column:
    """Judged by the record's own timestamp, not by the clock: every query and every repetition must judge the same.

    A record without a timestamp (-1) is not judged.
    """
    written_ms = F.unix_millis("timestamp")
    return (written_ms >= 0) & (F.unix_millis(_event_time(source)) > written_ms + F.lit(most_ms))


def _ahead_reason(source: Source, most_ms: int) -> Column:
    shown = "yyyy-MM-dd'T'HH:mm:ssX"
    return F.concat(
        F.lit(f"{source.event_time}: "),
        F.date_format(_event_time(source), shown),
        F.lit(f" is more than {most_ms / 1000:g} s ahead of the record's timestamp "),
        F.date_format("timestamp", shown),
    )


def _reason(source: Source) -> Column:
    if source.format == "avro":
        why = F.col(_ERROR)
    else:
        fault = _fault(source)
        # A plain function: of one with types Spark wants to know whether it is for columns of pandas.
        why = F.udf(lambda value, nulls: fault(value, nulls), "string")(F.col("value"), _null_columns(source))  # noqa: PLW0108
    reason = F.when(F.col("value").isNull(), F.lit(_NO_VALUE))
    if source.max_event_time_ahead_ms is not None:
        most_ms = source.max_event_time_ahead_ms
        is_ahead = F.coalesce(_is_ahead(source, most_ms) & ~_fails(source), F.lit(False))  # noqa: FBT003
        reason = reason.when(is_ahead, _ahead_reason(source, most_ms))
    return reason.otherwise(why)


def _fault(source: Source) -> JsonFault | CsvFault | DebeziumFault:
    schema = source.schema or ""
    if source.format == "debezium":
        return DebeziumFault(schema, is_flattened=source.flattened)
    return JsonFault(schema) if source.format == "json" else CsvFault(schema, source.options)


def _null_columns(source: Source) -> Column:
    """The columns that Spark's parser left empty: those that it refused are among them."""
    if source.format == "debezium":
        return DebeziumRows(source, _PARSED).empty_columns()
    names = columns(source.schema or "")
    empty = [F.when(F.col(f"{_PARSED}.`{name}`").isNull(), F.lit(name)) for name in names if "`" not in name]
    return F.array_compact(F.array(*empty))
