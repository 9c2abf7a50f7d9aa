"""Record filters: by key, by text in the value, by a header, by a JSON path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.records.reader import Record

Path = tuple[str | int, ...]

_STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[([0-9]{1,9})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_NOTHING: Final = object()


def parse_path(text: str) -> Path:
    """`$.user.tags[0]['a name']` as its steps; raises ValueError if it is not a valid path."""
    at = 1 if text.startswith("$") else 0
    text = text if at or text.startswith("[") else f".{text}"
    steps: list[str | int] = []
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise ValueError("a path must have the form $.user.tags[0]['a name']")
        name, index, single, double = found.groups()
        steps.append(
            int(index) if index is not None else next(part for part in (name, single, double) if part is not None)
        )
        at = found.end()
    return tuple(steps)


def at_path(document: object, path: Path) -> object:
    """The value at the path, or a value that equals nothing if there is none."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(document, list) or step >= len(document):
                return _NOTHING
            document = document[step]
        else:
            if not isinstance(document, dict) or step not in document:
                return _NOTHING
            document = document[step]
    return document


class Filter:
    def __init__(
        self,
        *,
        key: str | None = None,
        contains: str | None = None,
        headers: Sequence[str] = (),
        path: str | None = None,
        equals: str | None = None,
    ) -> None:
        """Raises ValueError if the path is invalid, or `equals` is used without a path."""
        if equals is not None and path is None:
            raise ValueError("`equals` needs a `path`")
        self._key = None if key is None else key.encode()
        self._contains = None if contains is None else contains.encode()
        self._headers = [_header(text) for text in headers]
        self._path = None if path is None else parse_path(path)
        self._equals = equals

    @property
    def takes_all(self) -> bool:
        return self._key is None and self._contains is None and not self._headers and self._path is None

    def matches(self, record: Record) -> bool:
        if self._key is not None and record.key != self._key:
            return False
        if self._contains is not None and self._contains not in (record.value or b""):
            return False
        if not all(_has_header(record, name, value) for name, value in self._headers):
            return False
        return self._path is None or self._is_at_path(record.value, self._path)

    def _is_at_path(self, value: bytes | None, path: Path) -> bool:
        try:
            found = at_path(msgspec.json.decode(value or b""), path)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if found is _NOTHING or self._equals is None:
            return found is not _NOTHING
        return found == self._equals or _as_text(found) == self._equals


def _as_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _header(text: str) -> tuple[str, bytes | None]:
    name, colon, value = text.partition(":")
    return name, value.encode() if colon else None


def _has_header(record: Record, name: str, value: bytes | None) -> bool:
    return any(key == name and (value is None or held == value) for key, held in record.headers)
