"""What may have been meant by a name that is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def closest(given: str, known: Iterable[str]) -> str | None:
    """The known name that is like the given one, if there is any.

    Nothing is like a name that is far longer than all of them, and comparing it could take as long as a sender likes.
    """
    names = list(known)
    if len(given) > 2 * max(map(len, names), default=0):
        return None
    # Imported here: few processes ever see a name misspelled.
    import difflib

    return next(iter(difflib.get_close_matches(given, names, n=1)), None)
