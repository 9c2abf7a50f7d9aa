"""Topics matched by the regular expressions of consumer groups: computed in steps, once per version of the topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.patterns import InvalidPattern, compiled

if TYPE_CHECKING:
    from collections.abc import Generator

    from ottla.groups.topic_view import TopicView

_MOST_KEPT: Final = 64
_NAMES_IN_A_STEP: Final = 50


class Matching:
    def __init__(self, topics: TopicView) -> None:
        self._topics = topics
        self._version: int | None = None
        self._found: dict[str, tuple[str, ...] | InvalidPattern] = {}

    def known(self, pattern: str) -> tuple[str, ...] | None:
        """The current topics that the expression matches, sorted; None if not computed yet.

        Raises InvalidPattern if it cannot be evaluated.
        """
        if self._version != self._topics.version:
            return None
        found = self._found.get(pattern)
        if isinstance(found, InvalidPattern):
            raise found
        return found

    def is_resolved(self, pattern: str) -> bool:
        return pattern in self._of_this_version()

    def resolve(self, pattern: str) -> None:
        """Compute the matching topics at once."""
        for _ in self.steps(pattern):
            pass

    def steps(self, pattern: str) -> Generator[None, None, None]:
        """Compute the matching topics in steps, yielding in between. Starts over if the topics change meanwhile."""
        while pattern not in self._of_this_version():
            version = self._topics.version
            found: tuple[str, ...] | InvalidPattern
            try:
                found = yield from self._matched(pattern)
            except InvalidPattern as invalid:
                found = invalid
            if version == self._topics.version:
                self._keep(pattern, found)

    def _matched(self, pattern: str) -> Generator[None, None, tuple[str, ...]]:
        matches = compiled(pattern).matches
        names = []
        for number, name in enumerate(list(self._topics.names()), 1):
            if matches(name):
                names.append(name)
            if not number % _NAMES_IN_A_STEP:
                yield
        return tuple(sorted(names))

    def _keep(self, pattern: str, found: tuple[str, ...] | InvalidPattern) -> None:
        kept = self._of_this_version()
        while len(kept) >= _MOST_KEPT:
            del kept[next(iter(kept))]
        kept[pattern] = found

    def _of_this_version(self) -> dict[str, tuple[str, ...] | InvalidPattern]:
        if self._version != self._topics.version:
            self._version = self._topics.version
            self._found.clear()
        return self._found
