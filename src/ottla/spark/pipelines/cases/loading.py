"""Parses `NAME.tests.toml` into test cases, or reports all errors."""

from __future__ import annotations

import base64
import json
import tomllib
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.cases.definition import DEFAULT_TIMESTAMP_MS, Case, ExpectedDeadLetter, SampleRecord
from ottla.spark.pipelines.fields import Fields, Mistakes
from ottla.spark.pipelines.times import moment_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ottla.spark.pipelines.definition import Pipeline

_KEYS: Final = ("records", "rows", "dead_letters", "tables")
_RECORD_KEYS: Final = ("value", "value_base64", "key", "headers", "timestamp", "topic", "partition")
_LETTER_KEYS: Final = ("value", "value_base64", "reason")


def tests_file(file: Path) -> Path:
    """The file with the cases of a pipeline's file."""
    return file.with_suffix(".tests.toml")


def load_cases(file: Path, pipeline: Pipeline) -> list[Case]:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as refused:
        raise ConfigError(f"{file} cannot be read: {getattr(refused, 'strerror', None) or refused}") from None
    return parse_cases(text, file, pipeline)


def parse_cases(text: str, file: Path, pipeline: Pipeline) -> list[Case]:
    mistakes = Mistakes(file.name, text)
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise ConfigError(f"{file.name} is not valid TOML: {wrong}") from None
    for key in given:
        if key != "case":
            mistakes.add((key,), f"no such key{suggestion(key, ['case'])}; write cases as [case.NAME]")
    tables = given.get("case")
    if not isinstance(tables, dict) or not tables or not all(isinstance(each, dict) for each in tables.values()):
        mistakes.add((), "there is no [case.NAME]")
        tables = {}
    cases = [_Reader(name, each, file, pipeline, mistakes).case() for name, each in tables.items()]
    if mistakes.found:
        raise ConfigError(mistakes.sentences())
    return cases


class _Reader:
    """Reads one case. Each method parses a value of the file and reports its errors."""

    def __init__(self, name: str, given: Mapping[str, Any], file: Path, pipeline: Pipeline, mistakes: Mistakes) -> None:
        self._name = name
        self._given = given
        self._folder = file.resolve().parent
        self._pipeline = pipeline
        self._mistakes = mistakes

    def case(self) -> Case:
        for key in self._given:
            if key not in _KEYS:
                self._wrong(key, f"no such key{suggestion(key, _KEYS)}")
        for key in ("records", *(() if "dead_letters" in self._given else ("rows",))):
            if key not in self._given:
                self._wrong("", f"needs {key}")
        sources = self._pipeline.sources
        return Case(
            name=self._name,
            records=self._by_name("records", sources, self._records),
            rows=self._by_name("rows", self._pipeline.sinks, self._rows),
            dead_letters=self._by_name("dead_letters", sources, self._dead_letters),
            tables=self._tables(),
        )

    def _wrong(self, key: str, what: str) -> None:
        self._mistakes.add(("case", self._name, key) if key else ("case", self._name), what)

    def _by_name(self, key: str, known: Iterable[str], read: Callable[[str, Any], list[Any]]) -> dict[str, list[Any]]:
        """`key.NAME = …`; the name may be omitted if there is only one."""
        given, names = self._given.get(key), list(known)
        if given is None:
            return {}
        if isinstance(given, dict) and (set(given) != {"file"} or "file" in names):
            for name in given:
                if name not in names:
                    self._wrong(key, f"no {name} in the pipeline{suggestion(name, names)}; it has {', '.join(names)}")
            return {name: read(key, each) for name, each in given.items() if name in names}
        if len(names) != 1:
            self._wrong(key, f"say which one: {key}.NAME with NAME one of {', '.join(names)}")
            return {}
        return {names[0]: read(key, given)}

    def _records(self, key: str, given: object) -> list[SampleRecord]:
        if (lines := self._lines(key, given)) is not None:
            return [SampleRecord(value=line.encode()) for line in lines]
        return [self._record(key, each) for each in self._list(key, given)]

    def _record(self, key: str, given: object) -> SampleRecord:
        if isinstance(given, str):
            return SampleRecord(value=given.encode())
        if not isinstance(given, dict) or not set(given) <= set(_RECORD_KEYS):
            self._wrong(key, f"a record is a text or a table of {', '.join(_RECORD_KEYS)}, not {_shown(given)}")
            return SampleRecord()
        headers = given.get("headers", {})
        if not isinstance(headers, dict):
            self._wrong(key, f"headers must be a table, not {_shown(headers)}")
            headers = {}
        fields = Fields(
            {name: each for name, each in given.items() if name in ("topic", "partition")}, (), Mistakes("", "")
        )
        return SampleRecord(
            value=self._bytes(key, given),
            key=None if "key" not in given else _as_bytes(given["key"]),
            headers=tuple((name, _as_bytes(each)) for name, each in headers.items()),
            timestamp_ms=self._timestamp(key, given.get("timestamp")),
            topic=fields.text("topic") or None,
            partition=fields.number("partition", 0, least=0) or 0,
        )

    def _bytes(self, key: str, given: Mapping[str, Any]) -> bytes | None:
        if "value_base64" not in given:
            return _as_bytes(given["value"]) if "value" in given else None
        try:
            return base64.b64decode(str(given["value_base64"]), validate=True)
        except ValueError:
            self._wrong(key, f"value_base64: {_shown(given['value_base64'])} is not valid base64")
            return None

    def _timestamp(self, key: str, given: object) -> int:
        if given is None:
            return DEFAULT_TIMESTAMP_MS
        text = given.isoformat() if isinstance(given, date) else str(given)
        try:
            return moment_ms(text, DEFAULT_TIMESTAMP_MS)
        except ConfigError:
            self._wrong(key, f"timestamp: {text!r} is not a time such as 2026-11-15T09:30:00Z")
            return DEFAULT_TIMESTAMP_MS

    def _rows(self, key: str, given: object) -> list[dict[str, Any]]:
        if (lines := self._lines(key, given)) is not None:
            return [self._object(key, line) for line in lines]
        rows = self._list(key, given)
        if not all(isinstance(each, dict) for each in rows):
            self._wrong(key, "must be a list of tables, or a text with a JSON object on each line")
            return []
        return rows

    def _object(self, key: str, line: str) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError as wrong:
            self._wrong(key, f"{_shown(line)} is not valid JSON: {wrong}")
            return {}
        if not isinstance(found, dict):
            self._wrong(key, f"{_shown(line)} is not a JSON object")
            return {}
        return found

    def _dead_letters(self, key: str, given: object) -> list[ExpectedDeadLetter]:
        found = []
        for each in self._list(key, given):
            if isinstance(each, str):
                found.append(ExpectedDeadLetter(reason=each))
            elif isinstance(each, dict) and each and set(each) <= set(_LETTER_KEYS):
                found.append(ExpectedDeadLetter(value=self._bytes(key, each), reason=str(each.get("reason", ""))))
            else:
                self._wrong(
                    key, f"a dead letter is a reason or a table of {', '.join(_LETTER_KEYS)}, not {_shown(each)}"
                )
        return found

    def _tables(self) -> dict[str, str]:
        given = self._given.get("tables", {})
        if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
            self._wrong("tables", 'must be paths by name, such as tables.cities = "cities-sample.csv"')
            return {}
        for name in given:
            if name not in self._pipeline.tables:
                self._wrong("tables", f"no table {name} in the pipeline{suggestion(name, self._pipeline.tables)}")
        return {name: path if "://" in path else str(self._folder / path) for name, path in given.items()}

    def _lines(self, key: str, given: object) -> list[str] | None:
        """Of a text, or of a file that is named; None if it is neither."""
        text = given
        if isinstance(given, dict):
            try:
                text = (self._folder / str(given.get("file"))).read_text("utf-8")
            except (OSError, UnicodeDecodeError) as refused:
                self._wrong(key, f"{given.get('file')} cannot be read: {getattr(refused, 'strerror', None) or refused}")
                text = ""
        return [line for line in text.splitlines() if line.strip()] if isinstance(text, str) else None

    def _list(self, key: str, given: object) -> list[Any]:
        if isinstance(given, list):
            return given
        self._wrong(key, f"must be a list or a text with one on each line, not {_shown(given)}")
        return []


def _as_bytes(value: object) -> bytes:
    """A text as it is, anything else as JSON."""
    return (
        value.encode() if isinstance(value, str) else json.dumps(value, default=_json_time, ensure_ascii=False).encode()
    )


def _json_time(value: object) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"  # noqa: PLR2004 - a line's worth
