"""Pipelines in tests: sample records through a pipeline's file, on real Spark and without a broker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ottla.spark.pipelines.cases.definition import Case, DeadLetter, Outcome, SampleRecord
from ottla.spark.pipelines.cases.loading import load_cases, tests_file
from ottla.spark.pipelines.cases.running import load_for_tests, run_case, run_cases, session_for_tests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["DeadLetter", "Outcome", "PipelineUnderTest", "SampleRecord"]


class PipelineUnderTest:
    """A pipeline file, run on sample records. Uses the current Spark session, or starts one."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._pipeline = load_for_tests(file)
        self._spark = session_for_tests(self._pipeline)

    def run(
        self, records: Mapping[str, Iterable[object]], *, tables: Mapping[str, str | Path] | None = None
    ) -> Outcome:
        """The rows of every sink and the dead letters of every source, for records by source.

        A record is a `SampleRecord`, bytes, a string, None (no value), or any other value, which is sent as JSON.
        """
        for name in records:
            if name not in self._pipeline.sources:
                raise ValueError(f"no source {name}; existing: {', '.join(self._pipeline.sources)}")
        case = Case(
            name="",
            records={name: [_record(each) for each in given] for name, given in records.items()},
            tables={name: str(path) for name, path in (tables or {}).items()},
        )
        return run_case(self._spark, self._pipeline, case)

    def check(self, tests: Path | None = None) -> None:
        """Run the test cases of a file (NAME.tests.toml beside the pipeline's file); raises AssertionError if one
        fails.
        """
        cases = load_cases(tests or tests_file(self._file), self._pipeline)
        lines = []
        for verdict in run_cases(self._spark, self._pipeline, cases):
            if verdict.differences:
                lines += [f"case {verdict.case.name}:", *(f"  {line}" for line in verdict.differences)]
        if lines:
            raise AssertionError("\n".join(lines))


def _record(given: object) -> SampleRecord:
    if isinstance(given, SampleRecord):
        return given
    if given is None or isinstance(given, bytes):
        return SampleRecord(value=given)
    return SampleRecord(value=(given if isinstance(given, str) else json.dumps(given)).encode())
