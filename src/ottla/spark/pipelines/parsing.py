"""Records as rows: parsed records with their columns, invalid ones with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.columns.ddl import quoted
from ottla.spark.pipelines.changes.record_keys import key_columns
from ottla.spark.pipelines.changes.rules import DELETED
from ottla.spark.pipelines.dead_letters.rules import BLOCK
from ottla.spark.pipelines.formats.parser import PARSED, TASK
from ottla.spark.pipelines.known_columns import known_columns
from ottla.spark.pipelines.limits import MOST_HEADER_BYTES, MOST_KEY_BYTES, MOST_VALUE_BYTES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.formats.parser import Parser

_PARSED_ONCE: Final = f"{TASK} >= 0"
"""Always true. Spark would push filters below the parsing, and parse again for each; it pushes none below a
non-deterministic column.
"""
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
    """The valid records: their columns and their origin. With `metric`, the query reports the number of records and
    the blocks of offsets with invalid ones under this name.
    """
    meta = [F.col(column).alias(name) for name, column in _META.items()]
    if not source.format.has_schema:
        return raw.select("key", "value", "headers", *meta)
    parser = source.format.parser(source)
    parsed = parser.parse(raw).where(_PARSED_ONCE)
    if metric is not None:
        parsed = _observed(parsed, parser, metric)
    parsed = parsed.where(~_is_bad(parser))
    if source.nulls == "skip":
        parsed = parsed.where(F.col("value").isNotNull())
    if source.has_deletes and not source.format.has_deletes:
        return parsed.select(*_with_deletes(source), *meta)
    rows = parsed.select(*parser.rows(), *meta)
    return rows.drop(*parser.hidden) if parser.hidden else rows


def _observed(parsed: DataFrame, parser: Parser, metric: str) -> DataFrame:
    block = F.concat_ws("/", "topic", "partition", F.expr(f"offset DIV {BLOCK}"))
    return parsed.observe(
        metric,
        F.count(F.lit(1)).alias("rows"),
        F.collect_set(F.when(_is_bad(parser), block)).alias("blocks"),
    )


def _with_deletes(source: Source) -> list[Column]:
    """A record without a value is a deletion, with the columns of its key."""
    types = known_columns(source) or {}
    is_deleted = F.col("value").isNull()
    keys = key_columns({name: types[name] for name in source.key})
    row = {name: F.col(f"{PARSED}.{quoted(name)}") for name in types}
    row |= {name: F.when(is_deleted, key).otherwise(row[name]) for name, key in keys.items()}
    return [*(column.alias(name) for name, column in row.items()), is_deleted.alias(DELETED)]


def bad_rows(raw: DataFrame, source: Source, pipeline: str) -> DataFrame:
    """The invalid records, unchanged, with the reason and their origin in headers."""
    parser = source.format.parser(source)
    bad = parser.parse(raw).where(_PARSED_ONCE).where(_is_bad(parser))
    headers_by_name = {
        "ottla.error": _reason(parser),
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
    headers = F.array(*(_header(name, value) for name, value in headers_by_name.items()))
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


def _is_bad(parser: Parser) -> Column:
    source = parser.source
    fails = parser.fails()
    has_value = F.col("value").isNotNull()
    is_bad = (has_value & fails) | ~has_value if source.nulls == "dead-letter" else has_value & fails
    if source.max_event_time_ahead_ms is not None:
        is_bad = is_bad | _is_ahead(parser, source.max_event_time_ahead_ms)
    return F.coalesce(is_bad, F.lit(False))  # noqa: FBT003 - a literal of Spark's


def _event_time(parser: Parser) -> Column:
    return parser.event_time(parser.source.event_time or "").cast("timestamp")


def _is_ahead(parser: Parser, most_ms: int) -> Column:
    """Compared with the record's timestamp, not with the clock: every query and every repetition must get the same
    result. A record without a timestamp (-1) is not checked.
    """
    written_ms = F.unix_millis("timestamp")
    return (written_ms >= 0) & (F.unix_millis(_event_time(parser)) > written_ms + F.lit(most_ms))


def _ahead_reason(parser: Parser, most_ms: int) -> Column:
    shown = "yyyy-MM-dd'T'HH:mm:ssX"
    return F.concat(
        F.lit(f"{parser.source.event_time}: "),
        F.date_format(_event_time(parser), shown),
        F.lit(f" is more than {most_ms / 1000:g} s ahead of the record's timestamp "),
        F.date_format("timestamp", shown),
    )


def _reason(parser: Parser) -> Column:
    reason = F.when(F.col("value").isNull(), F.lit(_NO_VALUE))
    most_ms = parser.source.max_event_time_ahead_ms
    if most_ms is not None:
        is_ahead = F.coalesce(_is_ahead(parser, most_ms) & ~parser.fails(), F.lit(False))  # noqa: FBT003
        reason = reason.when(is_ahead, _ahead_reason(parser, most_ms))
    return reason.otherwise(parser.reason())
