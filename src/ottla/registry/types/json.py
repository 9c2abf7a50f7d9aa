"""JSON Schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.registry.json_schema.differences import COMPATIBLE_LENIENT, COMPATIBLE_STRICT
from ottla.registry.json_schema.loading import load
from ottla.registry.json_schema.rules import compare
from ottla.registry.json_text import compact, parse_json

if TYPE_CHECKING:
    from ottla.registry.schemas import Parsed, Resolved


class JsonSchema:
    def __init__(self, text: str, resolved: Resolved) -> None:
        self._content = parse_json(text)
        self._node = load(self._content, {reference.name: parse_json(each) for reference, each in resolved})

    def canonical(self) -> str:
        return compact(self._content)

    def normalized(self) -> str:
        return compact(self._content, sort_keys=True)

    def formatted(self, wanted: str) -> str:  # noqa: ARG002 - there is one format
        return self.canonical()

    def incompatibilities(self, previous: Parsed, *, is_lenient: bool) -> list[str]:
        if not isinstance(previous, JsonSchema):
            raise TypeError(f"expected a JSON Schema, got {type(previous).__name__}")
        compatible = COMPATIBLE_LENIENT if is_lenient else COMPATIBLE_STRICT
        found = compare(previous._node, self._node, compatible)  # noqa: SLF001 - of this class
        return [str(each) for each in found if each.type not in compatible]

    def has_field(self, name: str) -> bool:
        properties = self._content.get("properties") if isinstance(self._content, dict) else None
        return isinstance(properties, dict) and name in properties

    def record_names(self) -> list[str]:
        title = self._content.get("title") if isinstance(self._content, dict) else None
        return [title] if isinstance(title, str) else []
