"""Which dead letters an SQL expression selects, and which were skipped by earlier ones. Pure rules."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS: Final = ("reason", "topic", "partition", "offset", "timestamp", "key", "value")
_MOST_NOTE_BYTES: Final = 4000
"""A broker keeps 4,096 bytes with a committed offset (`offset.metadata.max.bytes`)."""
_LEFT: Final = "left:"


class LetterFilter:
    """An SQL expression of SQLite over the columns of a dead letter; key and value are texts."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        # Created here and used in the client's thread, never concurrently.
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        columns = ", ".join(f'? AS "{name}"' for name in COLUMNS)
        self._query = f"SELECT ({expression}\n) FROM (SELECT {columns})"  # noqa: S608 - the user's expression, on the user's rows
        try:
            # Only compiled, to find unknown columns: functions may fail on these values.
            self._database.execute(f"EXPLAIN {self._query}", [None] * len(COLUMNS))
        except sqlite3.Error as wrong:
            raise ConfigError(f"--where: {wrong} (columns: {', '.join(COLUMNS)})") from None

    def takes(self, letter: Mapping[str, object]) -> bool:
        """A dead letter for which the expression fails, such as a JSON operator on invalid JSON, is not selected."""
        try:
            [[found]] = self._database.execute(self._query, [letter[name] for name in COLUMNS]).fetchall()
        except sqlite3.OperationalError:
            return False
        return bool(found)


class SkippedLetters:
    """Dead letters below the position of the group that were not selected, as inclusive ranges of offsets."""

    def __init__(self, note: str = "") -> None:
        self._ranges: list[tuple[int, int]] = []
        self._is_open = False
        for part in note.removeprefix(_LEFT).split(",") if note.startswith(_LEFT) else ():
            first, _, last = part.partition("-")
            self._ranges.append((int(first), int(last or first)))

    def __contains__(self, offset: int) -> bool:
        return any(first <= offset <= last for first, last in self._ranges)

    @property
    def first(self) -> int | None:
        return self._ranges[0][0] if self._ranges else None

    def note(self) -> str:
        """The metadata for the group's committed offset."""
        if not self._ranges:
            return ""
        text = _LEFT + ",".join(str(a) if a == b else f"{a}-{b}" for a, b in self._ranges)
        if len(text) > _MOST_NOTE_BYTES:
            raise ConfigError(
                f"--where leaves out {len(self._ranges)} separate ranges of dead letters, which are too many to keep; "
                "choose more of them, or redrive all"
            )
        return text

    def take(self, offset: int, *, is_sent: bool) -> None:
        """Called in the order of offsets. A letter that was sent is no longer skipped."""
        if is_sent:
            self._remove(offset)
            self._is_open = False
        elif offset not in self:
            if self._is_open:
                self._ranges[-1] = (self._ranges[-1][0], offset)
            else:
                self._ranges.append((offset, offset))
            self._is_open = True

    def _remove(self, offset: int) -> None:
        changed: list[tuple[int, int]] = []
        for first, last in self._ranges:
            if first <= offset <= last:
                changed += [(a, b) for a, b in ((first, offset - 1), (offset + 1, last)) if a <= b]
            else:
                changed.append((first, last))
        self._ranges = changed
