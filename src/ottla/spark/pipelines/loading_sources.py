"""`[source.NAME]`: the contents of a topic and how it is read."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final, get_args

from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.definition import Source
from ottla.spark.pipelines.fields import duration_ms
from ottla.spark.pipelines.formats.format import Nulls, SourceFormat
from ottla.spark.pipelines.formats.json_records import JsonFormat
from ottla.spark.pipelines.formats.registry import FORMATS
from ottla.spark.pipelines.keys import Incomplete, key_names, read_keys
from ottla.spark.pipelines.known_columns import beside_columns, known_columns
from ottla.spark.pipelines.plugins import UnknownPlugin
from ottla.spark.pipelines.sinks.sink import NO_DEAD_LETTERS
from ottla.spark.pipelines.times import moment_ms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.keys import FileContext

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_INFER: Final = "infer"


def read_source(name: str, fields: Fields, context: FileContext) -> Source:
    format_ = _format(fields, context)
    folder = context.folder
    source = Source(
        name=name,
        topics=_topics(name, fields),
        format=format_,
        schema=_schema(fields, folder),
        sample=fields.number("sample", 1000) or 1000,
        start=_start(fields),
        event_time=fields.text("event_time") or None,
        watermark=fields.text("watermark") or None,
        max_event_time_ahead_ms=fields.duration_ms("max_event_time_ahead", None),
        dead_letters=fields.text("dead_letters", f"{context.pipeline}.dead-letters"),
        nulls=fields.one_of("nulls", get_args(Nulls), format_.default_nulls),  # type: ignore[arg-type]
        key=fields.names("key"),
        max_per_batch=fields.number("max_per_batch", None),
        fail_on_data_loss=fields.truth("fail_on_data_loss", default=True),
        archive=_archive(fields.text("archive"), folder),
    )
    _check_schema(source, fields)
    _check_time(source, fields)
    _check_deletes(source, fields)
    if source.dead_letters != NO_DEAD_LETTERS and source.dead_letters in source.topics:
        fields.wrong("dead_letters", f"{source.dead_letters} is one of the topics that are read")
    return source


def _format(fields: Fields, context: FileContext) -> SourceFormat:
    """JSON if the key is invalid, which is reported."""
    name = fields.text("format", "json")
    try:
        kind = FORMATS.find(name)
        keys = key_names(kind)
    except ConfigError as refused:
        fields.wrong("format", str(refused))
        fields.know(*_keys_of_formats())
        if not isinstance(refused, UnknownPlugin):
            fields.know_all()
        return JsonFormat()
    _know_keys_of_other_formats(keys, fields)
    try:
        return kind(**read_keys(kind, fields, context, skipped=(), what=f"a source in {name}"))
    except Incomplete:
        return JsonFormat()


def _keys_of_formats() -> set[str]:
    """Of all built-in formats."""
    return {key for kind in FORMATS.built_in() for key in key_names(kind)}


def _know_keys_of_other_formats(own: Sequence[str], fields: Fields) -> None:
    """They have no effect, except for one that changes how records are parsed."""
    for key in ("framing", "options", "flattened"):
        if key not in own and fields.has(key):
            fields.know(key)
            if key == "flattened" and fields.truth(key, default=False):
                fields.wrong(key, 'needs format = "debezium"')


def _archive(place: str, folder: Path) -> str:
    """A folder relative to the file, or the address of an object store."""
    return place if not place or "://" in place else str(folder / place)


def _topics(name: str, fields: Fields) -> tuple[str, ...]:
    topics = fields.names("topics") or fields.names("topic") or (name,)
    if fields.has("topics") and fields.has("topic"):
        fields.wrong("topic", "is the same as topics; leave one of them out")
    for topic in topics:
        if not _TOPIC.fullmatch(topic):
            fields.wrong("topics", f"{topic!r} cannot be a topic's name")
    return topics


def _schema(fields: Fields, folder: Path) -> str | None:
    file_name = fields.text("schema_file")
    schema = fields.text("schema", _INFER)
    if file_name:
        if fields.has("schema"):
            fields.wrong("schema_file", "and schema say the same; leave one of them out")
        try:
            return (folder / file_name).read_text("utf-8").strip()
        except OSError as refused:
            fields.wrong("schema_file", f"{file_name} cannot be read: {refused.strerror}")
    return None if schema.strip() == _INFER else schema


def _start(fields: Fields) -> str:
    start = fields.text("start", "earliest")
    if start in ("earliest", "latest"):
        return start
    try:
        return str(moment_ms(start, int(time.time() * 1000)))
    except ConfigError as wrong:
        fields.wrong("start", f"is earliest, latest or a time: {wrong}")
        return "earliest"


def _check_schema(source: Source, fields: Fields) -> None:
    source.format.check(source, fields)
    if source.schema is None or not source.format.has_schema:
        return
    try:
        named = known_columns(source)
    except ConfigError as wrong:
        fields.wrong("schema", str(wrong))
        return
    for column in named or ():
        if column in (*beside_columns(source), "_corrupt"):
            fields.wrong("schema", f"the name {column} is taken; every row has {', '.join(beside_columns(source))}")


def _check_time(source: Source, fields: Fields) -> None:
    if source.watermark is not None and duration_ms(source.watermark) is None:
        fields.wrong("watermark", f"{source.watermark!r} is not a valid duration (use e.g. 10 minutes)")
    if source.max_event_time_ahead_ms is not None and source.event_time in (None, *beside_columns(source)):
        fields.wrong(
            "max_event_time_ahead",
            "needs event_time with a column of the record; the timestamps of records themselves are limited by the "
            "topic's message.timestamp.after.max.ms",
        )
    if source.event_time is None:
        return
    try:
        named = known_columns(source)
    except ConfigError:
        return
    beside = beside_columns(source)
    if named is None or source.event_time in beside:
        return
    if source.event_time not in named:
        known = (*named, *beside)
        fields.wrong("event_time", f"there is no column {source.event_time}{suggestion(source.event_time, known)}")
    elif not named[source.event_time].startswith("timestamp"):
        fields.wrong("event_time", f"{source.event_time} is a {named[source.event_time]}, and must be a timestamp")


def _check_deletes(source: Source, fields: Fields) -> None:
    if source.key and source.nulls != "delete":
        fields.wrong("key", 'says what a record without a value deletes; it needs nulls = "delete"')
    is_parsed = source.format.has_schema and not source.format.has_deletes
    if source.nulls == "delete" and is_parsed and not source.key:
        fields.wrong("nulls", 'delete needs key: the columns that the record\'s key holds, such as key = ["id"]')
    try:
        named = known_columns(source) or {}
    except ConfigError:
        return
    for name in source.key if named else ():
        if name not in named:
            fields.wrong("key", f"there is no column {name}{suggestion(name, named)}")
