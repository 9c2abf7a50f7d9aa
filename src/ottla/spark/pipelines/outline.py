"""A readable description of a pipeline. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.pipelines.times import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.spark.pipelines.definition import Pipeline, Source, Step
    from ottla.spark.pipelines.sinks.sink import Sink


def outline(
    pipeline: Pipeline,
    columns: Mapping[str, str] | None = None,
    changes: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """`columns` has what each query writes and `changes` the required changes of its table, if Spark was used."""
    lines = [f"{pipeline.name}, at {pipeline.broker}, every {pipeline.every_ms / 1000:g} s, state in {pipeline.state}"]
    lines += [line for source in pipeline.sources.values() for line in _source(source)]
    lines += [f"  table {table.name}: {table.format} {table.place}" for table in pipeline.tables.values()]
    lines += [f"  step {step.name}: {_step(step)}" for step in pipeline.steps]
    for sink in pipeline.sinks.values():
        lines.append(f"  sink {sink.name}: {_sink(sink)}")
        if columns and sink.name in columns:
            lines.append(f"    {columns[sink.name]}")
        lines += [f"    {change}" for change in (changes or {}).get(sink.name, ())]
    return "\n".join(lines)


def _source(source: Source) -> list[str]:
    start = shown(int(source.start)) if source.start.isdigit() else source.start
    lines = [f"  source {source.name}: {source.format.name} from {', '.join(source.topics)}, from {start} on"]
    if source.format.has_schema:
        lines.append(f"    {source.schema or 'schema inferred from the first records, and then kept'}")
    if source.watermark is not None:
        lines.append(f"    late after {source.watermark} by {source.event_time or '_timestamp'}")
    if source.max_event_time_ahead_ms is not None:
        ahead = f"{source.event_time} more than {source.max_event_time_ahead_ms / 1000:g} s ahead of its timestamp"
        lines.append(f"    a record with {ahead} is {'a dead letter' if source.has_dead_letters else 'dropped'}")
    if source.has_dead_letters:
        lines.append(f"    what does not parse goes to {source.dead_letters}")
    return lines


def _step(step: Step) -> str:
    if step.sql is not None:
        return " ".join(step.sql.split())
    if step.python is not None:
        return f"{step.python.file.name}:{step.python.function}"
    if step.rows is not None:
        kind = "pandas" if step.rows.is_pandas else "Arrow"
        function = step.rows.function
        return f"rows of {step.rows.of} by {function.file.name}:{function.function} ({kind}): {step.rows.schema}"
    rule = step.deduplicate
    return "" if rule is None else f"rows of {rule.of}, one for each {', '.join(rule.keys)}"


def _sink(sink: Sink) -> str:
    text = f"rows of {sink.of} to {sink.target}, {sink.mode}"
    named = sink.named_columns()
    if partition_by := named.get("partition_by"):
        text += f", partitioned by {', '.join(partition_by)}"
    if key := named.get("key"):
        text += f", key {', '.join(key)}"
    return text
