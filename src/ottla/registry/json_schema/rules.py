"""The differences between a pair of nodes, by their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.registry.json_schema import comparing, nodes
from ottla.registry.json_schema.array_rules import compare_arrays
from ottla.registry.json_schema.combined_rules import compare_combined, compare_with_combined
from ottla.registry.json_schema.differences import COMPATIBLE_STRICT
from ottla.registry.json_schema.object_rules import compare_objects
from ottla.registry.json_schema.values import compare_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from ottla.registry.json_schema.comparing import Comparison
    from ottla.registry.json_schema.differences import Difference
    from ottla.registry.json_schema.nodes import Node

_BYTES: Final = "bytes"


def compare(original: Node, update: Node, compatible: Collection[str] = COMPATIBLE_STRICT) -> list[Difference]:
    """All differences, compatible or not."""
    return comparing.compare(original, update, compatible, _compare_pair)


def _compare_pair(comparison: Comparison, original: Node, update: Node) -> None:
    if compare_with_combined(comparison, original, update):
        return
    if type(original) is not type(update):
        _compare_kinds(comparison, original, update)
        return
    for kind, before, after in (
        ("ID_CHANGED", original.id, update.id),
        ("TITLE_CHANGED", original.title, update.title),
        ("DESCRIPTION_CHANGED", original.description, update.description),
        ("DEFAULT_CHANGED", original.default, update.default),
    ):
        if before != after:
            comparison.add(kind)
    rule = _RULES.get(type(original))
    if rule is not None:
        rule(comparison, original, update)


def _compare_kinds(comparison: Comparison, original: Node, update: Node) -> None:
    if isinstance(original, nodes.Nothing) or isinstance(update, nodes.Empty):
        return
    # Kafka Connect writes decimals as a number or a string, with the same meaning.
    if original.connect_type == update.connect_type == _BYTES:
        return
    comparison.add("TYPE_CHANGED")


def _compare_strings(comparison: Comparison, original: nodes.String, update: nodes.String) -> None:
    compare_limits(comparison, "maxLength", original.max_length, update.max_length)
    compare_limits(comparison, "minLength", original.min_length, update.min_length)
    if original.pattern != update.pattern:
        how = "ADDED" if original.pattern is None else "REMOVED" if update.pattern is None else "CHANGED"
        comparison.add(f"PATTERN_{how}", "pattern")


def _compare_numbers(comparison: Comparison, original: nodes.Numeric, update: nodes.Numeric) -> None:
    compare_limits(comparison, "maximum", original.maximum, update.maximum)
    compare_limits(comparison, "minimum", original.minimum, update.minimum)
    compare_limits(comparison, "exclusiveMaximum", original.exclusive_maximum, update.exclusive_maximum)
    compare_limits(comparison, "exclusiveMinimum", original.exclusive_minimum, update.exclusive_minimum)
    if original.multiple_of != update.multiple_of:
        how = _change_of_multiple(original.multiple_of, update.multiple_of)
        comparison.add(f"MULTIPLE_OF_{how}", "multipleOf")
    if original.is_integer != update.is_integer:
        comparison.add("TYPE_EXTENDED" if original.is_integer else "TYPE_NARROWED")


def _change_of_multiple(before: nodes.Number | None, after: nodes.Number | None) -> str:
    if before is None:
        return "ADDED"
    if after is None:
        return "REMOVED"
    if before != 0 and after % before == 0:
        return "EXPANDED"
    return "REDUCED" if after != 0 and before % after == 0 else "CHANGED"


def _compare_enums(comparison: Comparison, original: nodes.Enum, update: nodes.Enum) -> None:
    if original.values != update.values:
        is_extended, is_narrowed = update.values > original.values, update.values < original.values
        how = "EXTENDED" if is_extended else "NARROWED" if is_narrowed else "CHANGED"
        comparison.add(f"ENUM_ARRAY_{how}", "enum")


def _compare_constants(comparison: Comparison, original: nodes.Const, update: nodes.Const) -> None:
    if original.value != update.value:
        comparison.add("ENUM_ARRAY_CHANGED", "const")


def _compare_negations(comparison: Comparison, original: nodes.Not, update: nodes.Not) -> None:
    with comparison.enter("not"):
        # The original must exclude what the update excludes.
        is_compatible = comparison.tried(update.member, original.member).is_compatible
        comparison.add("NOT_TYPE_NARROWED" if is_compatible else "NOT_TYPE_EXTENDED")


_RULES: Final[dict[type[Node], Callable[[Comparison, Any, Any], None]]] = {
    nodes.String: _compare_strings,
    nodes.Numeric: _compare_numbers,
    nodes.Const: _compare_constants,
    nodes.Enum: _compare_enums,
    nodes.Combined: compare_combined,
    nodes.Not: _compare_negations,
    nodes.Object: compare_objects,
    nodes.Array: compare_arrays,
}
