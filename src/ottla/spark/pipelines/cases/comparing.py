"""Compares expected and actual rows and dead letters. Pure rules."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

from ottla.core.closest import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.spark.pipelines.cases.definition import Case, DeadLetter, ExpectedDeadLetter, Outcome

_MOST_SHOWN: Final = 20
_NEAR: Final = 1e-9
"""Sums of floating-point numbers depend on the order of rows."""


def differences(case: Case, outcome: Outcome) -> list[str]:
    """The differences as lines of text; none if the outcome is as expected."""
    lines = []
    for sink, expected in case.rows.items():
        lines += row_differences(f"sink {sink}", expected, outcome.rows[sink], outcome.columns[sink])
    for source, letters in outcome.dead_letters.items():
        lines += _letter_differences(f"dead letters of {source}", case.dead_letters.get(source, ()), letters)
    return lines


def row_differences(
    title: str, expected: Sequence[Mapping[str, Any]], actual: Sequence[Mapping[str, Any]], columns: Iterable[str]
) -> list[str]:
    """Columns that no expected row names are not compared; one that some rows name is null in the others."""
    named = list(dict.fromkeys(column for row in expected for column in row))
    known = list(columns)
    if unknown := [f"{column}{suggestion(column, known)}" for column in named if column not in known]:
        return [f"{title}: there is no column {', '.join(unknown)} (columns: {', '.join(known)})"]
    wanted = [{column: row.get(column) for column in named} for row in expected]
    came = [{column: row.get(column) for column in named} for row in actual] if named else list(actual)
    missing: list[Mapping[str, Any]] = []
    for row in wanted:
        at = next((n for n, other in enumerate(came) if _equal(row, other)), None)
        if at is None:
            missing.append(row)
        else:
            del came[at]
    return _told(title, "row", missing, came) if missing or came else []


def _told(title: str, what: str, missing: list[Mapping[str, Any]], extra: list[Any]) -> list[str]:
    lines = [f"{title}: {_count(len(missing), what)} missing (-), {_count(len(extra), what)} not expected (+)"]
    for row in missing[:_MOST_SHOWN]:
        lines.append(f"  - {shown(row)}")
        closest = max(extra, key=lambda other: _likeness(row, other), default=None)
        if closest is not None and _likeness(row, closest):
            extra.remove(closest)
            unlike = [column for column in row if not _equal(row[column], closest.get(column))]
            lines += [f"  + {shown(closest)}", f"    different: {', '.join(unlike)}"]
    lines += [f"  + {shown(row)}" for row in extra[:_MOST_SHOWN]]
    left = max(0, len(missing) - _MOST_SHOWN) + max(0, len(extra) - _MOST_SHOWN)
    return [*lines, f"  and {left:,} more"] if left else lines


def _letter_differences(title: str, expected: Sequence[ExpectedDeadLetter], actual: Sequence[DeadLetter]) -> list[str]:
    came = list(actual)
    missing: list[Mapping[str, Any]] = []
    for letter in expected:
        fitting = next((each for each in came if _fits(each, letter)), None)
        if fitting is None:
            value = {} if letter.value is None else {"value": letter.value}
            missing.append({**value, "reason": letter.reason} if letter.reason else value)
        else:
            came.remove(fitting)
    extra = [{"value": each.value, "reason": each.reason} for each in came]
    return _told(title, "record", missing, extra) if missing or extra else []


def _fits(letter: DeadLetter, expected: ExpectedDeadLetter) -> bool:
    return expected.value in (None, letter.value) and expected.reason in letter.reason


def _likeness(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    return sum(_equal(value, other.get(column)) for column, value in one.items())


def _equal(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=_NEAR) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and bool(one == other)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def shown(row: Mapping[str, Any]) -> str:
    return json.dumps(row, default=_text, ensure_ascii=False)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
