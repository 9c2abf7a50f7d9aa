"""How a table is laid out: columns, cut to a width if there is one. Nothing is printed here."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GAP: Final = 2
NARROWEST: Final = 6
"""Text is not cut below this, or nothing of it would be left to recognise."""
_CUT: Final = "…"


def layout(columns: Sequence[str], rows: Sequence[Mapping[str, object]], width: int | None = None) -> list[str]:
    """The lines of a table, its heading first: numbers to the right, the widest columns cut until it fits."""
    cells = [[spoken(row.get(column)) for column in columns] for row in rows]
    headings = [column.replace("_", " ").upper() for column in columns]
    is_number = [_is_numeric(column, rows) for column in columns]
    widths = [max(map(width_of, column)) for column in zip(headings, *cells, strict=True)]
    if width is not None:
        # Half a number would be another number, so only its heading may be cut.
        least = [
            max(width_of(line[index]) for line in cells) if is_number[index] else NARROWEST
            for index in range(len(columns))
        ]
        widths = fitted(widths, least, width)
    return [(" " * GAP).join(map(_aligned, line, widths, is_number)).rstrip() for line in (headings, *cells)]


def fitted(widths: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Narrower widths that fit into the total, if none gets less than its least; the widest give way first."""
    fitting = list(widths)
    too_much = sum(fitting) + GAP * (len(fitting) - 1) - total
    while too_much > 0:
        spare = [index for index in range(len(fitting)) if fitting[index] > least[index]]
        if not spare:
            break
        fitting[max(spare, key=fitting.__getitem__)] -= 1
        too_much -= 1
    return fitting


def spoken(value: object) -> str:
    """A value as a cell: one line, without what a terminal would take for a command."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Collection) and not isinstance(value, str):
        return ",".join(map(str, value)) or "-"
    return printable(str(value))


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def printable(text: str) -> str:
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def width_of(text: str) -> int:
    """Its width in terminal columns."""
    return len(text) if text.isascii() else sum(map(_places, text))


def _places(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _is_numeric(column: str, rows: Sequence[Mapping[str, object]]) -> bool:
    present = [row[column] for row in rows if row.get(column) is not None]
    return bool(present) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in present)


def _aligned(text: str, width: int, is_number: bool) -> str:  # noqa: FBT001 - mapped over columns
    shown = _cut(text, width)
    padding = " " * (width - width_of(shown))
    return padding + shown if is_number else shown + padding


def _cut(text: str, width: int) -> str:
    if width_of(text) <= width:
        return text
    kept = text
    while width_of(kept) >= width:
        kept = kept[:-1]
    return kept + _CUT
