"""Spark's analysis errors in one line. Pure rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ottla.core.closest import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

_COLUMN: Final = re.compile(r"\[UNRESOLVED_COLUMN[^\]]*\].*? with name (\S+) cannot be resolved\.(?:.*? \[(.*?)\])?")
_TABLE: Final = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view (\S+) cannot be found")
_PLACE: Final = re.compile(r"; line (\d+),? pos (\d+)")


def sql_error(text: str, tables: Iterable[str]) -> str:
    """`tables` are the names that a query may use."""
    lines = text.strip().splitlines()
    line = lines[0] if lines else ""
    place = _PLACE.search(text)
    where = f" (line {place[1]}, position {place[2]} of the query)" if place else ""
    if found := _COLUMN.search(line):
        near = [_plain(each) for each in (found[2] or "").split(", ") if each]
        there = f"; the nearest are {', '.join(near)}" if near else ""
        return f"there is no column {_plain(found[1])}{there}{where}"
    if found := _TABLE.search(line):
        name = _plain(found[1])
        known = list(tables)
        return f"there is no table {name}{suggestion(name, known)} (tables: {', '.join(known)}){where}"
    return line


def missing_table(text: str) -> str | None:
    """The missing table that a query refers to."""
    found = _TABLE.search(text)
    return None if found is None else _plain(found[1])


def _plain(name: str) -> str:
    return name.replace("`", "")
