"""Whether a reader's Avro schema can read data of a writer's schema: the rules of Avro's SchemaCompatibility."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.registry.errors import InvalidSchema

if TYPE_CHECKING:
    from ottla.registry.avro.schema import Field, Schema


class Difference(NamedTuple):
    type: str
    path: str
    message: str

    def __str__(self) -> str:
        described = _DESCRIPTIONS[self.type].format(path=self.path, message=self.message)
        return f"{{errorType:'{self.type}', description:'{described}', additionalInfo:'{self.message}'}}"


_DESCRIPTIONS: Final = {
    "NAME_MISMATCH": "the name of the schema has changed (path '{path}')",
    "FIXED_SIZE_MISMATCH": "the size of the fixed type at path '{path}' differs between the %s and the %s schema",
    "MISSING_ENUM_SYMBOLS": "the %s schema lacks the enum symbols '{message}' at path '{path}' of the %s schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "the field '{message}' at path '{path}' in the %s schema has no default value and is missing in the %s schema"
    ),
    "TYPE_MISMATCH": "the type at path '{path}' in the %s schema does not match the %s schema",
    "MISSING_UNION_BRANCH": "the union at path '{path}' in the %s schema lacks a type of the %s schema",
}
_PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
_Location = tuple[str, ...]


def compare(writer: Schema, reader: Schema) -> list[Difference]:
    """Why the reader's schema cannot read the writer's data; empty if it can."""
    try:
        return _Comparison().pair(reader, writer, ())
    except RecursionError:
        raise InvalidSchema("nested too deeply to be compared") from None


class _Comparison:
    def __init__(self) -> None:
        self._memo: dict[tuple[int, int], list[Difference]] = {}

    def pair(self, reader: Schema, writer: Schema, at: _Location) -> list[Difference]:
        key = (id(reader), id(writer))
        if key not in self._memo:
            # A pair that is reached again during its own comparison counts as compatible unless proven otherwise.
            self._memo[key] = []
            self._memo[key] = self._compared(reader, writer, at)
        return self._memo[key]

    def _compared(self, reader: Schema, writer: Schema, at: _Location) -> list[Difference]:
        if reader.kind == writer.kind:
            return self._same_kind(reader, writer, at)
        if writer.kind == "union":
            pairs = enumerate(writer.branches)
            return [found for index, branch in pairs for found in self.pair(reader, branch, (*at, str(index)))]
        if reader.kind == "union":
            if any(not self.pair(branch, writer, ()) for branch in reader.branches):
                return []
            return [_lacking(writer, at)]
        if writer.kind in _PROMOTIONS.get(reader.kind, ()):
            return []
        message = f"reader type: {reader.type_name} not compatible with writer type: {writer.type_name}"
        return [_difference("TYPE_MISMATCH", at, message)]

    def _same_kind(self, reader: Schema, writer: Schema, at: _Location) -> list[Difference]:
        if reader.element is not None and writer.element is not None:
            step = "items" if reader.kind == "array" else "values"
            return self.pair(reader.element, writer.element, (*at, step))
        if reader.kind == "union":
            branches = enumerate(writer.branches)
            return [_lacking(each, (*at, str(to))) for to, each in branches if self.pair(reader, each, ())]
        if reader.name is None:
            return []
        found = _names(reader, writer, at)
        if reader.kind == "fixed" and reader.size != writer.size:
            found.append(
                _difference("FIXED_SIZE_MISMATCH", (*at, "size"), f"expected: {writer.size}, found: {reader.size}")
            )
        elif reader.kind == "enum":
            found += _symbols(reader, writer, at)
        for position, field in enumerate(reader.fields):
            found += self._field(field, writer, (*at, "fields", str(position)))
        return found

    def _field(self, field: Field, writer: Schema, at: _Location) -> list[Difference]:
        written = _written(field, writer)
        if written is not None:
            return self.pair(field.type, written.type, (*at, "type"))
        if field.has_default:
            return []
        if field.type.enum_default is not None:
            return self.pair(field.type, writer, (*at, "type"))
        return [_difference("READER_FIELD_MISSING_DEFAULT_VALUE", at, field.name)]


def _names(reader: Schema, writer: Schema, at: _Location) -> list[Difference]:
    if reader.name is None or writer.name is None or reader.name.name == writer.name.name:
        return []
    if writer.name.full in (alias.full for alias in reader.aliases):
        return []
    return [_difference("NAME_MISMATCH", (*at, "name"), f"expected: {writer.name.full}")]


def _symbols(reader: Schema, writer: Schema, at: _Location) -> list[Difference]:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.enum_default is not None:
        return []
    return [_difference("MISSING_ENUM_SYMBOLS", (*at, "symbols"), f"[{', '.join(missing)}]")]


def _written(field: Field, writer: Schema) -> Field | None:
    found = [each for name in (field.name, *field.aliases) if (each := writer.field(name)) is not None]
    if len(found) > 1:
        raise InvalidSchema(f"field {field.name} matches several fields of the other schema")
    return found[0] if found else None


def _lacking(writer: Schema, at: _Location) -> Difference:
    return _difference("MISSING_UNION_BRANCH", at, f"reader union lacking writer type: {writer.type_name}")


def _difference(kind: str, at: _Location, message: str) -> Difference:
    return Difference(kind, "/" + "/".join(at), message)
