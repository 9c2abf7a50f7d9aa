"""Why a record does not match its schema. Spark only reports that it does not."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Final

from ottla.columns.ddl import columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WHOLE: Final = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
_FRACTIONS: Final = ("float", "real", "double", "decimal", "dec", "numeric")
_DECIMALS: Final = ("decimal", "dec", "numeric")
_MOST_SHOWN: Final = 60


class JsonFault:
    """A function for Spark's workers, from the value's bytes to the reason. `nulls` are the columns that Spark's
    parser left null: the invalid field is one of them, and has a value.
    """

    def __init__(self, ddl: str) -> None:
        self._ddl = ddl

    def __call__(self, value: bytes | None, nulls: Sequence[str]) -> str:
        if value is None:
            return "the record has no value"
        wanted = columns(self._ddl)
        try:
            content = json.loads(value)
        except (ValueError, RecursionError) as wrong:
            return f"not JSON: {wrong}"
        if not isinstance(content, dict):
            return f"not a JSON object: {_shown(content)}"
        suspects = [name for name in nulls if content.get(name) is not None]
        # Spark may keep the valid parts of a struct or list.
        nested = [name for name in wanted if "<" in wanted[name] and content.get(name) is not None]
        obvious = [name for name in suspects if not _fits(content[name], wanted[name])]
        for name in obvious or _certain(suspects, nulls, wanted) or nested:
            return f"{name}: {_shown(content[name])} is not a valid {wanted[name]}"
        return f"does not fit the schema {self._ddl}"


class CsvFault:
    def __init__(self, ddl: str, options: Mapping[str, str]) -> None:
        self._ddl = ddl
        self._separator = options.get("sep") or options.get("delimiter") or ","

    def __call__(self, value: bytes | None, nulls: Sequence[str]) -> str:
        if value is None:
            return "the record has no value"
        try:
            text = value.decode()
        except UnicodeDecodeError as wrong:
            return f"not UTF-8: {wrong}"
        wanted = columns(self._ddl)
        given = next(csv.reader([text], delimiter=self._separator[:1]), [])
        if len(given) != len(wanted):
            return f"has {len(given)} columns, but the schema has {len(wanted)}"
        fields = dict(zip(wanted, given, strict=True))
        suspects = [name for name in nulls if fields[name]]
        obvious = [name for name in suspects if not _reads_as(fields[name], wanted[name])]
        for name in obvious or _certain(suspects, nulls, wanted):
            return f"{name}: {_shown(fields[name])} is not a valid {wanted[name]}"
        return f"does not fit the schema {self._ddl}"


def _certain(suspects: list[str], nulls: Sequence[str], wanted: Mapping[str, str]) -> list[str]:
    """A parser that gave up leaves all columns null, which says nothing about any of them."""
    return suspects if len(suspects) == 1 or len(nulls) < len(wanted) else []


def _fits(value: object, kind: str) -> bool:
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
    if word in _DECIMALS:
        return is_number or (isinstance(value, str) and _reads_as(value, word))
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


class FramedFault:
    """The reason for a value with the id of a schema registry."""

    def __init__(self, fault: JsonFault) -> None:
        self._fault = fault

    def __call__(self, value: bytes | None, nulls: Sequence[str]) -> str:
        frame = {b"\0": 5, b"\1": 17}.get(bytes(value[:1]), 0) if value else 0
        return self._fault(None if value is None else value[frame:], nulls)
