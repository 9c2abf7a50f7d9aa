"""Reads the keys of a TOML file one by one; every error is collected, with its line and a suggestion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import msgspec

from ottla.core.closest import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|h|d|milliseconds?|seconds?|minutes?|hours?|days?)")
_UNIT_MS: Final = {"m": 60_000, "h": 3_600_000, "s": 1000, "ms": 1, "d": 86_400_000}

T = TypeVar("T")


class Mistakes:
    """The errors of a file."""

    def __init__(self, file_name: str, text: str) -> None:
        self._file_name = file_name
        self._lines = text.splitlines()
        self.found: list[tuple[int, str]] = []

    def add(self, path: tuple[str, ...], what: str) -> None:
        line = self._line_of(path)
        where = f"{self._file_name}, line {line}" if line else self._file_name
        key = path[-1] if len(path) == 1 else f"[{'.'.join(path[:2])}] {'.'.join(path[2:])}".rstrip()
        self.found.append((line, f"{where}: {key}: {what}" if path else f"{where}: {what}"))

    def sentences(self) -> str:
        return "\n".join(text for _, text in sorted(self.found, key=lambda each: each[0]))

    def _line_of(self, path: tuple[str, ...]) -> int:
        """The line of a key below its table's heading; 0 if unknown."""
        start = 0
        if len(path) > 1:
            start = self._find(rf"\s*\[\s*{re.escape(path[0])}\s*\.\s*[\"']?{re.escape(path[1])}[\"']?\s*\]", 0)
            if not start or len(path) == 2:  # noqa: PLR2004 - a table itself
                return start
        if not path:
            return 0
        return self._find(rf"\s*[\"']?{re.escape(path[-1])}[\"']?\s*[=.]", start) or start

    def _find(self, pattern: str, start: int) -> int:
        for number, line in enumerate(self._lines[start:], start + 1):
            if re.match(pattern, line):
                return number
        return 0


class Fields:
    """One table of the file. Keys that were not read before `finish` are unknown keys."""

    def __init__(self, given: Mapping[str, Any], path: tuple[str, ...], mistakes: Mistakes) -> None:
        self._given = given
        self._path = path
        self._mistakes = mistakes
        self._asked: set[str] = set()

    def wrong(self, key: str, what: str) -> None:
        self._mistakes.add((*self._path, key) if key else self._path, what)

    def has(self, key: str) -> bool:
        return key in self._given

    @property
    def keys(self) -> list[str]:
        """All given keys."""
        return list(self._given)

    def text(self, key: str, default: str = "", *, needed: bool = False) -> str:
        value = self._take(key, str, "text", needed=needed)
        return default if value is None else value

    def one_of(self, key: str, choices: Iterable[str], default: str | None) -> str:
        known = list(choices)
        value = self._take(key, str, "text", needed=default is None)
        if value is None:
            return default or known[0]
        if value not in known:
            self.wrong(key, f"{value!r} is not one of {', '.join(known)}{suggestion(value, known)}")
            return known[0]
        return str(value)

    def number(self, key: str, default: int | None, *, least: int = 1) -> int | None:
        value = self._take(key, int, "a whole number")
        if value is None:
            return default
        if isinstance(value, bool) or value < least:
            self.wrong(key, f"must be a whole number of at least {least}, not {value}")
            return default
        return int(value)

    def truth(self, key: str, *, default: bool) -> bool:
        value = self._take(key, bool, "true or false")
        return default if value is None else value

    def names(self, key: str) -> tuple[str, ...]:
        """A list of strings; a single string is a list of one."""
        if isinstance(self._given.get(key), str):
            return (self.text(key),)
        value = self._take(key, list, "a string or a list of strings")
        if value is None:
            return ()
        if not all(isinstance(each, str) for each in value):
            self.wrong(key, "must be a list of strings")
            return ()
        return tuple(value)

    def settings(self, key: str) -> dict[str, str]:
        """A table of strings, numbers and booleans, as strings."""
        value = self._take(key, dict, "a table")
        return {name: setting_text(each) for name, each in (value or {}).items()}

    @overload
    def duration_ms(self, key: str, default: int) -> int: ...
    @overload
    def duration_ms(self, key: str, default: None) -> int | None: ...
    def duration_ms(self, key: str, default: int | None) -> int | None:
        value = self._take(key, str, "a duration such as 10s")
        if value is None:
            return default
        found = duration_ms(value)
        if found is None:
            self.wrong(key, f"{value!r} is not a valid duration (use e.g. 10s, 5 minutes or 1h)")
            return default
        return found

    def inner(self, key: str) -> Fields | None:
        """A table inside this one."""
        value = self._take(key, dict, "a table")
        return None if value is None else Fields(value, (*self._path, key), self._mistakes)

    def converted(self, key: str, kind: type[T], default: T) -> T:
        """A value of any type that msgspec supports; the default if it is missing or invalid."""
        value = self._take(key, object, "a value")
        if value is None:
            return default
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as wrong:
            self.wrong(key, str(wrong).removesuffix(" - at `$`"))
            return default

    def know(self, *keys: str) -> None:
        """Do not report these keys as unknown."""
        self._asked.update(keys)

    def know_all(self) -> None:
        """Do not report unknown keys: the valid ones are not known."""
        self._asked.update(self._given)

    def finish(self) -> None:
        for key in self._given:
            if key not in self._asked:
                self.wrong(key, f"no such key{suggestion(key, self._asked)}")

    def _take(self, key: str, kind: type[T], what: str, *, needed: bool = False) -> T | None:
        self._asked.add(key)
        value = self._given.get(key)
        if value is None:
            if needed:
                self.wrong("", f"needs {key}")
            return None
        if not isinstance(value, kind):
            self.wrong(key, f"must be {what}, not {value!r}")
            return None
        return value


def duration_ms(text: str) -> int | None:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        return None
    unit = match[2]
    return int(match[1]) * _UNIT_MS["ms" if unit.startswith(("ms", "milli")) else unit[0]]


def setting_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
