"""Why a record does not fit its schema, in a few words. Spark only says that it does not."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.pipelines.ddl import columns

if TYPE_CHECKING:
    from collections.abc import Mapping

_WHOLE: Final = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
_FRACTIONS: Final = ("float", "real", "double", "decimal", "dec", "numeric")
_MOST_SHOWN: Final = 60


class JsonFault:
    """A function for Spark's workers: the value's bytes in, the reason out."""

    def __init__(self, ddl: str) -> None:
        self._ddl = ddl

    def __call__(self, value: bytes | None) -> str:
        if value is None:
            return "the record has no value"
        try:
            content = json.loads(value)
        except (ValueError, RecursionError) as wrong:
            return f"not JSON: {wrong}"
        if not isinstance(content, dict):
            return f"the JSON is no object but {_shown(content)}"
        for name, kind in columns(self._ddl).items():
            if not _fits(content.get(name), kind):
                return f"{name}: {_shown(content[name])} is no {kind}"
        return f"does not fit the schema {self._ddl}"


class CsvFault:
    def __init__(self, ddl: str, options: Mapping[str, str]) -> None:
        self._ddl = ddl
        self._separator = options.get("sep") or options.get("delimiter") or ","

    def __call__(self, value: bytes | None) -> str:
        if value is None:
            return "the record has no value"
        try:
            text = value.decode()
        except UnicodeDecodeError as wrong:
            return f"not UTF-8: {wrong}"
        wanted = columns(self._ddl)
        given = next(csv.reader([text], delimiter=self._separator[:1]), [])
        if len(given) != len(wanted):
            return f"has {len(given)} columns, and the schema {len(wanted)}"
        for (name, kind), field in zip(wanted.items(), given, strict=True):
            if field and not _reads_as(field, kind):
                return f"{name}: {_shown(field)} is no {kind}"
        return f"does not fit the schema {self._ddl}"


def _fits(value: Any, kind: str) -> bool:  # noqa: ANN401 - of JSON
    if value is None or kind in ("string", "variant"):
        return True
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    expected: dict[str, bool] = {
        "boolean": isinstance(value, bool),
        "array": isinstance(value, list),
        "map": isinstance(value, dict),
        "struct": isinstance(value, dict),
    }
    word = kind.partition("<")[0].partition("(")[0].strip().lower()
    if word in _WHOLE:
        return isinstance(value, int) and not isinstance(value, bool)
    if word in _FRACTIONS:
        return is_number
    return expected.get(word, isinstance(value, str))


def _reads_as(text: str, kind: str) -> bool:
    word = kind.partition("(")[0]
    try:
        if word in _WHOLE:
            int(text)
        elif word in _FRACTIONS:
            float(text)
    except ValueError:
        return False
    return word != "boolean" or text.lower() in ("true", "false")


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
