"""Avro schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.registry.avro.compatibility import compare
from ottla.registry.avro.parsing import parse
from ottla.registry.avro.printing import canonical, normalized

if TYPE_CHECKING:
    from ottla.registry.schemas import Parsed, Resolved


class AvroSchema:
    def __init__(self, text: str, resolved: Resolved, *, is_new: bool) -> None:
        self._schema, self._known = parse(text, [each for _, each in resolved], is_new=is_new)

    def canonical(self) -> str:
        return canonical(self._schema, self._known)

    def normalized(self) -> str:
        return normalized(self._schema, self._known)

    def formatted(self, wanted: str) -> str:
        """The text in a format; `resolved` includes the referenced types."""
        return canonical(self._schema) if wanted == "resolved" else self.canonical()

    def incompatibilities(self, previous: Parsed, *, is_lenient: bool) -> list[str]:  # noqa: ARG002 - as of all types
        if not isinstance(previous, AvroSchema):
            raise TypeError(f"expected an Avro schema, got {type(previous).__name__}")
        return [str(each) for each in compare(previous._schema, self._schema)]  # noqa: SLF001 - of this class

    def has_field(self, name: str) -> bool:
        return self._schema.field(name) is not None

    def record_names(self) -> list[str]:
        name = self._schema.name
        return [self._schema.kind if name is None else name.full]
