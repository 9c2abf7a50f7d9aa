"""Runs test cases: the steps of a pipeline on Spark, with sample records instead of topics."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.cases.comparing import differences
from ottla.spark.pipelines.cases.definition import Case, DeadLetter, Outcome
from ottla.spark.pipelines.cases.samples import SampleReading
from ottla.spark.pipelines.cases.values import typed
from ottla.spark.pipelines.changes.marking import stored_rows
from ottla.spark.pipelines.frames import dead_letter_rows, first_line, sink_rows
from ottla.spark.pipelines.loading import parse_pipeline
from ottla.spark.pipelines.sessions import activate, pipeline_session, silence
from ottla.spark.pipelines.state_folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.pipelines.definition import Pipeline

_OURS: Final = "ottla."
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_JSON: Final = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_SHUFFLES: Final = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class Verdict:
    case: Case
    seconds: float
    differences: Sequence[str]
    """None if it passed."""


def load_for_tests(file: Path) -> Pipeline:
    """A pipeline's file, with pinned schemas; unset variables are empty, since sinks are not used."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as refused:
        raise ConfigError(f"{file} cannot be read: {getattr(refused, 'strerror', None) or refused}") from None
    environment = dict.fromkeys(_VARIABLE.findall(text), "") | dict(os.environ)
    pipeline = parse_pipeline(text, file, environment)
    pinned = StateFolder(pipeline.state).schemas()
    sources = {
        name: replace(source, schema=source.schema or pinned.get(name)) for name, source in pipeline.sources.items()
    }
    for source in sources.values():
        if source.schema is None and source.format.has_schema:
            raise ConfigError(
                f"[source.{source.name}] schema: tests read no topics; write the schema, or run the pipeline once"
            )
    return replace(pipeline, sources=sources)


def session_for_tests(pipeline: Pipeline) -> SparkSession:
    """A Spark session for short jobs; the existing one of this process, if any."""
    spark = pipeline_session(pipeline, "local[1]")
    spark.conf.set(_SHUFFLES, pipeline.spark.get(_SHUFFLES, "1"))
    silence(spark, pipeline)
    return spark


def run_cases(spark: SparkSession, pipeline: Pipeline, cases: Iterable[Case]) -> Iterator[Verdict]:
    for case in cases:
        begun = time.monotonic()
        try:
            found = run_case(spark, pipeline, case)
        except ConfigError:
            raise
        except Exception as failed:  # noqa: BLE001 - anything that a step raises fails its case, and no other
            lines: Sequence[str] = [f"failed: {first_line(failed)}"]
        else:
            lines = differences(_typed_case(case, found), found)
        yield Verdict(case, time.monotonic() - begun, lines)


def run_case(spark: SparkSession, pipeline: Pipeline, case: Case) -> Outcome:
    """Run a case's records, for the sinks that the case names, or for all if it names none."""
    activate(spark)
    changed = replace(
        pipeline,
        tables={
            name: replace(table, path=case.tables.get(name, table.path)) for name, table in pipeline.tables.items()
        },
    )
    reading = SampleReading(case.records)
    frames = {
        name: stored_rows(sink_rows(spark, changed, name, reading), changed.sinks[name])
        for name in case.rows or pipeline.sinks
    }
    letters = {
        source.name: _letters(dead_letter_rows(spark, changed, source, reading))
        for source in changed.sources.values()
        if source.has_dead_letters and case.records.get(source.name)
    }
    types = {name: _types(frame) for name, frame in frames.items()}
    rows = {name: _collected(frame, types[name]) for name, frame in frames.items()}
    return Outcome(rows=rows, dead_letters=letters, columns=types)


def _types(frame: DataFrame) -> dict[str, Any]:
    return {field.name: field.dataType.jsonValue() for field in frame.schema.fields}


def _collected(frame: DataFrame, types: dict[str, Any]) -> list[dict[str, Any]]:
    whole = F.to_json(F.struct(*(f"`{column}`" for column in frame.columns)), _JSON)
    found = []
    for [line] in frame.select(whole).collect():
        tree = json.loads(line, parse_float=Decimal)
        found.append({column: typed(tree.get(column), kind) for column, kind in types.items()})
    return found


def _letters(frame: DataFrame) -> list[DeadLetter]:
    found = []
    for row in frame.collect():
        headers = [(each.key, None if each.value is None else bytes(each.value)) for each in row.headers]
        found.append(
            DeadLetter(
                value=None if row.value is None else bytes(row.value),
                key=None if row.key is None else bytes(row.key),
                reason=(dict(headers)["ottla.error"] or b"").decode(),
                headers=tuple(each for each in headers if not each[0].startswith(_OURS)),
            )
        )
    return found


def _typed_case(case: Case, found: Outcome) -> Case:
    """The case with expected values converted to the columns' types."""
    rows = {}
    for sink, expected in case.rows.items():
        types = found.columns[sink]
        rows[sink] = [{column: typed(each, types.get(column)) for column, each in row.items()} for row in expected]
    return replace(case, rows=rows)
