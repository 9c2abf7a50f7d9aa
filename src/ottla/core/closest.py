"""Suggests the closest known name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def closest(given: str, known: Iterable[str]) -> str | None:
    """The closest known name, if any.

    Much longer names have no match: comparing them could take arbitrarily long.
    """
    names = list(known)
    if len(given) > 2 * max(map(len, names), default=0):
        return None
    # Imported lazily: most processes never see a misspelled name.
    import difflib

    return next(iter(difflib.get_close_matches(given, names, n=1)), None)


def suggestion(given: str, known: Iterable[str]) -> str:
    """The end of an error message: the closest known name, if any."""
    close = closest(given, known)
    return "" if close is None else f"; did you mean {close}?"
