"""Changes of limits and of optional subschemas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ottla.registry.json_schema import nodes

if TYPE_CHECKING:
    from ottla.registry.json_schema.comparing import Comparison
    from ottla.registry.json_schema.nodes import Node


def compare_limits(
    comparison: Comparison, keyword: str, before: nodes.Number | None, after: nodes.Number | None
) -> None:
    if before == after:
        return
    if before is None or after is None:
        how = "ADDED" if before is None else "REMOVED"
    else:
        how = "INCREASED" if before < after else "DECREASED"
    comparison.add(f"{_upper(keyword)}_{how}", keyword)


def compare_additional(
    comparison: Comparison, keyword: str, before: tuple[bool, Node | None], after: tuple[bool, Node | None]
) -> None:
    """Compare `before` and `after`: whether additional members are allowed, and their schema, if any."""
    name = _upper(keyword)
    with comparison.enter(keyword):
        if before[0] != after[0]:
            comparison.add(f"{name}_{'REMOVED' if before[0] else 'ADDED'}")
        elif before[1] is None and after[1] is not None:
            comparison.add(f"{name}_NARROWED")
        elif after[1] is None and before[1] is not None:
            comparison.add(f"{name}_EXTENDED")
        else:
            comparison.pair(before[1], after[1])


def compare_unevaluated(comparison: Comparison, keyword: str, before: Node | None, after: Node | None) -> None:
    if before is None and after is None:
        return
    with comparison.enter(keyword):
        how = _change_of_unevaluated(before, after)
        if how is None:
            comparison.pair(before, after)
        else:
            comparison.add(f"{_upper(keyword)}_{how}")


def _change_of_unevaluated(before: Node | None, after: Node | None) -> str | None:
    was_closed, is_closed = isinstance(before, nodes.Nothing), isinstance(after, nodes.Nothing)
    if was_closed != is_closed:
        return "ADDED" if was_closed else "REMOVED"
    if before is None or (isinstance(before, nodes.Empty) and after is not None and not isinstance(after, nodes.Empty)):
        return "NARROWED"
    if after is None or (isinstance(after, nodes.Empty) and not isinstance(before, nodes.Empty)):
        return "EXTENDED"
    return None


def _upper(keyword: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", keyword).upper()
