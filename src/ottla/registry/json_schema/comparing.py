"""The comparison of two JSON Schemas: walks pairs of nodes and collects differences.

The rules and their names are those of Confluent's registry. A pair of nodes is compared once, wherever it occurs. A
cycle is assumed to be compatible; if that assumption proves wrong, the comparison is repeated with the results so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.registry.errors import InvalidSchema
from ottla.registry.json_schema import nodes
from ottla.registry.json_schema.differences import Difference

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ottla.registry.json_schema.nodes import Node

    Rule = Callable[["Comparison", Node, Node], None]

_Pair = tuple[int, int]
_MOST_LOOKUPS: Final = 2_000_000
"""The maximum number of lookups, which takes a few seconds."""
_DEEPEST: Final = 60
"""The maximum recursion depth of nested pairs; deeper ones are compared without recursion."""


def compare(original: Node, update: Node, compatible: Collection[str], rule: Rule) -> list[Difference]:
    """All differences that `rule` finds, compatible or not."""
    known: dict[_Pair, list[Difference]] = {}
    budget = _MOST_LOOKUPS
    try:
        while True:
            shared = _Shared(compatible, known, rule, budget)
            shared.settle(nodes.resolved(original), nodes.resolved(update))
            comparison = Comparison(shared)
            comparison.pair(original, update)
            found = comparison.incompatible_pairs()
            if not comparison.assumed or found.keys() == known.keys():
                return comparison.differences
            known, budget = found, shared.budget
    except RecursionError:
        raise InvalidSchema("nested too deeply to be compared") from None


class _TooDeep(Exception):  # noqa: N818 - not an error: the pair is compared first, with an empty stack
    def __init__(self, original: Node, update: Node) -> None:
        self.pair = original, update


class _Shared:
    """State shared by all branches of a comparison."""

    def __init__(
        self, compatible: Collection[str], known: dict[_Pair, list[Difference]], rule: Rule, budget: int
    ) -> None:
        self.compatible = compatible
        self.rule = rule
        self.known = known
        self.budget = budget
        """The remaining lookups before the comparison is aborted."""
        self.memo: dict[_Pair, list[Difference]] = {}
        self.under_way: set[_Pair] = set()
        self.kept: list[Node] = []
        self.has_assumed = False
        self._entered: list[_Pair] = []
        """The innermost pairs in progress: those on the interpreter's stack."""

    def settle(self, original: Node, update: Node) -> None:
        """Compare a pair, however deeply its pairs are nested: one that is too deep interrupts the enclosing
        comparisons.
        """
        interrupted: list[tuple[Node, Node, list[_Pair]]] = [(original, update, [])]
        while interrupted:
            outer, inner, entered = interrupted[-1]
            self.under_way.difference_update(entered)
            self._entered = []
            try:
                self.evaluate(outer, inner)
            except _TooDeep as deep:
                # The enclosing pairs stay in progress, so that a cycle through them is recognised.
                interrupted[-1] = outer, inner, self._entered
                interrupted.append((*deep.pair, []))
            else:
                interrupted.pop()

    def evaluate(self, original: Node, update: Node) -> list[Difference]:
        key = id(original), id(update)
        if len(self._entered) >= _DEEPEST:
            raise _TooDeep(original, update)
        self.under_way.add(key)
        self._entered.append(key)
        self.kept += (original, update)
        below = Comparison(self)
        self.rule(below, original, update)
        self._entered.pop()
        self.under_way.discard(key)
        self.memo[key] = below.differences
        return below.differences


class Comparison:
    """Differences below one path."""

    def __init__(self, shared: _Shared, path: tuple[str, ...] = ()) -> None:
        self._shared = shared
        self.differences: list[Difference] = []
        self._path = list(path)

    @property
    def assumed(self) -> bool:
        return self._shared.has_assumed

    @property
    def is_compatible(self) -> bool:
        return all(each.type in self._shared.compatible for each in self.differences)

    def incompatible_pairs(self) -> dict[_Pair, list[Difference]]:
        compatible = self._shared.compatible
        memo = self._shared.memo.items()
        return {pair: found for pair, found in memo if any(each.type not in compatible for each in found)}

    def branch(self) -> Comparison:
        """A separate comparison whose differences may be discarded."""
        return Comparison(self._shared, tuple(self._path))

    def tried(self, original: Node | None, update: Node | None) -> Comparison:
        branch = self.branch()
        branch.pair(original, update)
        return branch

    def add(self, kind: str, *steps: str) -> None:
        self.differences.append(Difference(kind, "#/" + "/".join((*self._path, *steps))))

    def extend(self, differences: Iterable[Difference]) -> None:
        self.differences += differences

    def enter(self, *steps: str) -> _Scope:
        return _Scope(self._path, steps)

    def pair(self, original: Node | None, update: Node | None) -> None:
        if original is None or update is None:
            if original is not update:
                self.add("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED")
            return
        relative = self._compared(nodes.resolved(original), nodes.resolved(update))
        prefix = "#/" + "/".join(self._path)
        for kind, path in relative:
            rebased = path if not self._path else prefix if path == "#/" else f"{prefix}/{path[2:]}"
            self.differences.append(Difference(kind, rebased))

    def _compared(self, original: Node, update: Node) -> list[Difference]:
        """Differences relative to the pair."""
        shared, key = self._shared, (id(original), id(update))
        shared.budget -= 1
        if shared.budget < 0:
            raise InvalidSchema("too large to be compared")
        if (found := shared.memo.get(key)) is not None:
            return found
        if key in shared.under_way:
            if (known := shared.known.get(key)) is not None:
                return known
            shared.has_assumed = True
            return []
        return shared.evaluate(original, update)


class _Scope:
    def __init__(self, path: list[str], steps: tuple[str, ...]) -> None:
        self._path = path
        self._steps = steps

    def __enter__(self) -> None:
        self._path += self._steps

    def __exit__(self, *_: object) -> None:
        del self._path[len(self._path) - len(self._steps) :]
