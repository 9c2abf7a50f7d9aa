"""Generates a pipeline's file for a topic from its records. Pure rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ottla.columns.ddl import columns, quoted
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.changes.debezium import is_envelope, rows_in
from ottla.spark.pipelines.inference import csv_schema, json_schema
from ottla.spark.pipelines.sinks.registry import SINKS

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILE: Final = """\
# A pipeline: `ottla pipeline check` validates it, `ottla pipeline run` runs it.
broker = "{broker}"
every = "10s"                     # how often to read new records

[source.{name}]
topics = ["{topic}"]
format = "{format}"                   # json, csv, avro, debezium or raw
{schema}
start = "earliest"                # or latest, or a time such as 2026-11-15T09:30
{time}
# dead_letters = "{pipeline}.dead-letters"    # the topic for records that do not parse

# Every source and step is a table for the SQL of those after it. Beside its own columns a row has
# _key, _topic, _partition, _offset and _timestamp; columns that begin with _ do not reach a sink.
[step.rows]
sql = \"\"\"
SELECT {columns}, _timestamp AS written_at
FROM {name}
\"\"\"

[sink.{sink}]
kind = "{sink}"
from = "rows"
{sink_keys}
"""


def example(topic: str, broker: str, values: Sequence[bytes | None], sink: str, pipeline: str) -> str:
    """`pipeline` is the name in the file."""
    name = re.sub(r"\W", "_", topic)
    name = name if name[:1].isalpha() else f"t{name}"
    kind, schema = _looks_like(values)
    named = {"value": "binary"} if schema is None else columns(schema)
    times = [column for column, of in named.items() if of == "timestamp"]
    return _FILE.format(
        broker=broker,
        name=name,
        topic=topic,
        pipeline=pipeline,
        format=kind,
        schema='# schema = "id bigint, name string"' if schema is None else f"schema = '''{schema}'''",
        time=(
            f'event_time = "{times[0]}"\nwatermark = "10 minutes"         # later records are left out of windows\n'
            '# max_event_time_ahead = "1 day"  # a record from further in the future is a dead letter'
            if times
            else '# event_time = "_timestamp"\n# watermark = "10 minutes"'
        ),
        columns=", ".join([*map(quoted, named), *(_change_columns(sink) if kind == "debezium" else ())]),
        sink=sink,
        sink_keys=_sink_keys(sink, has_changes=kind == "debezium").format(name=name, first=next(iter(named))),
    )


def _change_columns(sink: str) -> list[str]:
    """Sinks with a key apply deletions; the others keep every change."""
    return ["_op AS op", "_deleted AS is_deleted"] if sink in ("parquet", "console") else ["_deleted"]


def _sink_keys(sink: str, *, has_changes: bool) -> str:
    text = "\n".join(SINKS.find(sink).example)
    return text.replace("# key = ", "key = ") if has_changes else text


def _looks_like(values: Sequence[bytes | None]) -> tuple[str, str | None]:
    """The format and schema of most records."""
    some = [value for value in values if value]
    objects = sum(value.lstrip()[:1] == b"{" for value in some)
    if some and sum(map(is_envelope, some)) * 2 > len(some):
        return "debezium", json_schema(rows_in(some, is_flattened=False))
    if some and objects * 2 > len(some):
        return "json", json_schema(some)
    commas = sum(b"," in value and b"\x00" not in value for value in some)
    if some and commas * 2 > len(some):
        try:
            return "csv", csv_schema(some, {})
        except ConfigError:
            return "raw", None
    return "raw", None
