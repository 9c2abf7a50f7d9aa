"""Protobuf schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.registry.errors import InvalidSchema
from ottla.registry.protobuf.compatibility import COMPATIBLE, compare
from ottla.registry.protobuf.nodes import Message
from ottla.registry.protobuf.normalizing import normalized
from ottla.registry.protobuf.parsing import parse
from ottla.registry.protobuf.printing import canonical
from ottla.registry.protobuf.types import Types

if TYPE_CHECKING:
    from ottla.registry.protobuf.nodes import ProtoFile
    from ottla.registry.schemas import Parsed, Resolved


class ProtobufSchema:
    def __init__(self, text: str, resolved: Resolved) -> None:
        references = {reference.name: _parsed(each) for reference, each in resolved}
        origins = {reference.name: (reference.subject, reference.version) for reference, _ in resolved}
        self._types = Types(_parsed(text), references, origins)
        self._types.check()

    def canonical(self) -> str:
        return canonical(self._types.file)

    def normalized(self) -> str:
        return canonical(normalized(self._types.file, self._types))

    def formatted(self, wanted: str) -> str:
        """The text in a format; `serialized` is the base64 of a FileDescriptorProto."""
        if wanted != "serialized":
            return self.canonical()
        from ottla.registry.protobuf.serialized import serialized

        return serialized(self._types)

    def incompatibilities(self, previous: Parsed, *, is_lenient: bool) -> list[str]:  # noqa: ARG002 - as of all types
        if not isinstance(previous, ProtobufSchema):
            raise TypeError(f"expected a Protobuf schema, got {type(previous).__name__}")
        found = compare(previous._types, self._types)  # noqa: SLF001 - of this class
        return [str(each) for each in found if each.type not in COMPATIBLE]

    def has_field(self, name: str) -> bool:
        first = next((each for each in self._types.file.types if isinstance(each, Message)), None)
        return first is not None and any(each.name == name for each in first.all_fields())

    def record_names(self) -> list[str]:
        file = self._types.file
        prefix = f"{file.package}." if file.package else ""
        return [prefix + each.name for each in file.types if isinstance(each, Message)]


def _parsed(text: str) -> ProtoFile:
    try:
        return parse(text)
    except InvalidSchema as malformed:
        # Some clients send a serialized descriptor.
        from ottla.registry.protobuf.serialized import decode

        if " " in text.strip() or (descriptor := decode(text)) is None:
            raise malformed from None
        from ottla.registry.protobuf.from_descriptor import proto_file

        return proto_file(descriptor)
