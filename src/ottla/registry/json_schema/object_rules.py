"""Objects: properties, and whether additional ones are allowed (open, partially open or closed content models)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.patterns import InvalidPattern, compiled
from ottla.registry.json_schema import nodes
from ottla.registry.json_schema.values import compare_additional, compare_limits, compare_unevaluated

if TYPE_CHECKING:
    from ottla.registry.json_schema.comparing import Comparison
    from ottla.registry.json_schema.nodes import Node


def compare_objects(comparison: Comparison, original: nodes.Object, update: nodes.Object) -> None:
    _compare_required(comparison, original, update)
    with comparison.enter("properties"):
        for name in original.properties | update.properties:
            with comparison.enter(name):
                _compare_property(comparison, original, update, name)
    _compare_dependencies(comparison, original, update)
    before, after = (original.takes_additional, original.additional), (update.takes_additional, update.additional)
    compare_additional(comparison, "additionalProperties", before, after)
    compare_unevaluated(comparison, "unevaluatedProperties", original.unevaluated, update.unevaluated)
    compare_limits(comparison, "maxProperties", original.max_properties, update.max_properties)
    compare_limits(comparison, "minProperties", original.min_properties, update.min_properties)


def _compare_required(comparison: Comparison, original: nodes.Object, update: nodes.Object) -> None:
    for name in original.properties:
        if name not in update.properties:
            continue
        was_required, is_required = name in original.required, name in update.required
        if was_required and not is_required:
            comparison.add("REQUIRED_ATTRIBUTE_REMOVED", "required", name)
        elif is_required and not was_required:
            kind = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if _has_default(update, name) else "REQUIRED_ATTRIBUTE_ADDED"
            comparison.add(kind, "required", name)


def _compare_property(comparison: Comparison, original: nodes.Object, update: nodes.Object, name: str) -> None:
    before, after = original.properties.get(name), update.properties.get(name)
    if before is not None and after is not None:
        comparison.pair(before, after)
    elif before is not None:
        _compare_removed(comparison, update, name, before)
    elif after is not None:
        if _is_open(original):
            _compare_added_to_open(comparison, update, name, after)
        else:
            _compare_added(comparison, original, update, name)


def _compare_removed(comparison: Comparison, update: nodes.Object, name: str, before: Node) -> None:
    """Compare a removed property: only the update's content model counts, and whether it allows the property."""
    if _is_open(update):
        comparison.add("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL")
    elif (covering := _covering(update, name)) is not None:
        branch = comparison.tried(before, covering)
        comparison.extend(branch.differences)
        how = "IS_COVERED" if branch.is_compatible else "NOT_COVERED"
        comparison.add(f"PROPERTY_REMOVED_{how}_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    elif isinstance(before, nodes.Nothing):
        comparison.add("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        comparison.add("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL")


def _compare_added_to_open(comparison: Comparison, update: nodes.Object, name: str, after: Node) -> None:
    if isinstance(after, nodes.Empty):
        comparison.add("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL")
    else:
        comparison.add(f"{_necessity(update, name)}_ADDED_TO_OPEN_CONTENT_MODEL")


def _compare_added(comparison: Comparison, original: nodes.Object, update: nodes.Object, name: str) -> None:
    """Compare an added property: only the original's content model counts, and which values data may have there."""
    covering = _covering(original, name)
    if covering is not None:
        branch = comparison.tried(covering, update.properties[name])
        comparison.extend(branch.differences)
        how = "IS_COVERED" if branch.is_compatible else "NOT_COVERED"
        comparison.add(f"PROPERTY_ADDED_{how}_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    comparison.add(f"{_necessity(update, name)}_ADDED_TO_UNOPEN_CONTENT_MODEL")


def _necessity(update: nodes.Object, name: str) -> str:
    if name not in update.required:
        return "OPTIONAL_PROPERTY"
    return "REQUIRED_PROPERTY_WITH_DEFAULT" if _has_default(update, name) else "REQUIRED_PROPERTY"


def _has_default(schema: nodes.Object, name: str) -> bool:
    return schema.properties[name].default is not None


def _compare_dependencies(comparison: Comparison, original: nodes.Object, update: nodes.Object) -> None:
    with comparison.enter("dependencies"):
        for name in original.property_dependencies | update.property_dependencies:
            how = _change_of_names(original.property_dependencies.get(name), update.property_dependencies.get(name))
            if how is not None:
                comparison.add(f"DEPENDENCY_ARRAY_{how}", name)
        for name in original.schema_dependencies | update.schema_dependencies:
            before, after = original.schema_dependencies.get(name), update.schema_dependencies.get(name)
            if before is None or after is None:
                comparison.add(f"DEPENDENCY_SCHEMA_{'ADDED' if before is None else 'REMOVED'}", name)
            else:
                with comparison.enter(name):
                    comparison.pair(before, after)


def _change_of_names(before: frozenset[str] | None, after: frozenset[str] | None) -> str | None:
    if after is None:
        return "REMOVED"
    if before is None:
        return "ADDED"
    if before == after:
        return None
    return "EXTENDED" if after > before else "NARROWED" if after < before else "CHANGED"


def _is_open(schema: nodes.Object) -> bool:
    """Whether any additional property may have any value."""
    if not schema.takes_additional or schema.additional is not None or schema.pattern_properties:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated, nodes.Empty)


def _covering(schema: nodes.Object, name: str) -> Node | None:
    """The schema of an unlisted property, if it is allowed with some values."""
    for pattern, node in schema.pattern_properties.items():
        if _matches(pattern, name):
            return node
    if schema.additional is not None:
        return schema.additional
    if schema.takes_additional and not isinstance(schema.unevaluated, nodes.Nothing | nodes.Empty):
        return schema.unevaluated
    return None


def _matches(pattern: str, name: str) -> bool:
    try:
        return compiled(f".*(?:{pattern}).*").matches(name)
    except InvalidPattern:
        # Such a pattern matches no property: the change is reported as incompatible.
        return False
