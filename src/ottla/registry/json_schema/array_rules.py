"""Arrays: items by position, and whether additional items are allowed."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from ottla.registry.json_schema import nodes
from ottla.registry.json_schema.values import compare_additional, compare_limits, compare_unevaluated

if TYPE_CHECKING:
    from ottla.registry.json_schema.comparing import Comparison
    from ottla.registry.json_schema.nodes import Node


def compare_arrays(comparison: Comparison, original: nodes.Array, update: nodes.Array) -> None:
    with comparison.enter("items"):
        comparison.pair(original.all_items, update.all_items)
    for at, (before, after) in enumerate(zip_longest(original.items, update.items)):
        with comparison.enter("items", str(at)):
            if before is not None and after is not None:
                comparison.pair(before, after)
            elif before is not None:
                _compare_removed(comparison, update, before)
            elif after is not None:
                _compare_added(comparison, original, after)
    extra_before, extra_after = (
        (original.takes_additional, original.additional),
        (
            update.takes_additional,
            update.additional,
        ),
    )
    compare_additional(comparison, "additionalItems", extra_before, extra_after)
    compare_unevaluated(comparison, "unevaluatedItems", original.unevaluated, update.unevaluated)
    compare_limits(comparison, "maxItems", original.max_items, update.max_items)
    compare_limits(comparison, "minItems", original.min_items, update.min_items)
    if original.unique_items != update.unique_items:
        comparison.add(f"UNIQUE_ITEMS_{'REMOVED' if original.unique_items else 'ADDED'}", "uniqueItems")
    compare_limits(comparison, "maxContains", original.max_contains, update.max_contains)
    compare_limits(comparison, "minContains", original.min_contains, update.min_contains)


def _compare_removed(comparison: Comparison, update: nodes.Array, before: Node) -> None:
    if _is_open(update):
        comparison.add("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL")
    elif (covering := _covering(update)) is not None:
        branch = comparison.tried(before, covering)
        comparison.extend(branch.differences)
        how = "IS_COVERED" if branch.is_compatible else "NOT_COVERED"
        comparison.add(f"ITEM_REMOVED_{how}_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    elif isinstance(before, nodes.Nothing):
        comparison.add("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        comparison.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL")


def _compare_added(comparison: Comparison, original: nodes.Array, after: Node) -> None:
    if _is_open(original):
        what = "ITEM_WITH_EMPTY_SCHEMA" if isinstance(after, nodes.Empty) else "ITEM"
        comparison.add(f"{what}_ADDED_TO_OPEN_CONTENT_MODEL")
    elif (covering := _covering(original)) is not None:
        branch = comparison.tried(covering, after)
        comparison.extend(branch.differences)
        how = "IS_COVERED" if branch.is_compatible else "NOT_COVERED"
        comparison.add(f"ITEM_ADDED_{how}_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    else:
        comparison.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")


def _is_open(schema: nodes.Array) -> bool:
    if not schema.takes_additional or schema.additional is not None:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated, nodes.Empty)


def _covering(schema: nodes.Array) -> Node | None:
    if schema.additional is not None:
        return schema.additional
    if schema.takes_additional and not isinstance(schema.unevaluated, nodes.Nothing | nodes.Empty):
        return schema.unevaluated
    return None
