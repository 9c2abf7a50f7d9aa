"""allOf, anyOf and oneOf: members are matched with each other, regardless of their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.registry.json_schema import nodes

if TYPE_CHECKING:
    from ottla.registry.json_schema.comparing import Comparison
    from ottla.registry.json_schema.differences import Difference
    from ottla.registry.json_schema.nodes import Node

_Edges = dict[tuple[int, int], "list[Difference]"]


def compare_with_combined(comparison: Comparison, original: Node, update: Node) -> bool:
    """Whether a combination and another schema are compatible because of one of its members."""
    if isinstance(update, nodes.Combined) and not isinstance(original, nodes.Combined):
        members = update.members
        is_any = update.criterion in ("anyOf", "oneOf")
        pairs, kind = [(original, member) for member in members], "SUM_TYPE_EXTENDED"
    elif isinstance(original, nodes.Combined) and not isinstance(update, nodes.Combined):
        members = original.members
        is_any = original.criterion == "allOf"
        pairs, kind = [(member, update) for member in members], "PRODUCT_TYPE_NARROWED"
    else:
        return False
    if len(members) != 1 and not is_any:
        return False
    for before, after in pairs:
        branch = comparison.tried(before, after)
        if branch.is_compatible:
            comparison.extend(branch.differences)
            if len(members) != 1:
                comparison.add(kind)
            return True
    return False


def compare_combined(comparison: Comparison, original: nodes.Combined, update: nodes.Combined) -> None:
    if original.criterion != update.criterion:
        is_extended = _is_extended(original, update)
        comparison.add("COMBINED_TYPE_EXTENDED" if is_extended else "COMBINED_TYPE_CHANGED")
        if not is_extended:
            return
    befores, afters = _distinct(original), _distinct(update)
    if len(befores) < len(afters):
        comparison.add("PRODUCT_TYPE_EXTENDED" if update.criterion == "allOf" else "SUM_TYPE_EXTENDED")
    elif len(befores) > len(afters):
        comparison.add("PRODUCT_TYPE_NARROWED" if original.criterion == "allOf" else "SUM_TYPE_NARROWED")
    edges = _compatible_pairs(comparison, original.criterion, befores, afters)
    matching = _largest_matching(edges, len(befores))
    for pair in matching:
        comparison.extend(edges[pair])
    if len(matching) < min(len(befores), len(afters)):
        comparison.add("COMBINED_TYPE_SUBSCHEMAS_CHANGED")


def _is_extended(original: nodes.Combined, update: nodes.Combined) -> bool:
    was_one, is_one = len(original.members) == 1, len(update.members) == 1
    if update.criterion == "anyOf" or (was_one and is_one):
        return True
    return (was_one and update.criterion == "oneOf") or (is_one and original.criterion == "allOf")


def _distinct(node: nodes.Combined) -> list[Node]:
    return list({member.source: member for member in reversed(node.members)}.values())[::-1]


def _compatible_pairs(comparison: Comparison, criterion: str, befores: list[Node], afters: list[Node]) -> _Edges:
    edges: _Edges = {}
    for at, before in enumerate(befores):
        with comparison.enter(criterion, str(at)):
            for to, after in enumerate(afters):
                branch = comparison.tried(before, after)
                if branch.is_compatible:
                    edges[at, to] = branch.differences
    return edges


def _largest_matching(edges: _Edges, size: int) -> list[tuple[int, int]]:
    """A maximum bipartite matching; equal schemas are matched first."""
    ways: dict[int, list[int]] = {}
    for (at, to), _ in sorted(edges.items(), key=lambda edge: len(edge[1])):
        ways.setdefault(at, []).append(to)
    taken: dict[int, int] = {}
    for at in range(size):
        _augment(at, ways, taken, set())
    return sorted((at, to) for to, at in taken.items())


def _augment(at: int, ways: dict[int, list[int]], taken: dict[int, int], seen: set[int]) -> bool:
    for to in ways.get(at, ()):
        if to not in seen:
            seen.add(to)
            if to not in taken or _augment(taken[to], ways, taken, seen):
                taken[to] = at
                return True
    return False
