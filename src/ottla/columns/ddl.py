"""Spark's way to write a schema down, `id bigint, tags array<string>`: enough of it to name columns without Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ottla.columns.types import Array, Map, struct_of
from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.columns.types import Struct, Type

_SIMPLE: Final = (
    "bigint", "binary", "boolean", "byte", "date", "double", "float", "int", "integer", "long", "real", "short",
    "smallint", "string", "timestamp", "timestamp_ltz", "timestamp_ntz", "tinyint", "variant",
)  # fmt: skip
_NESTED: Final = ("array", "map", "struct")
_WITH_ARGUMENTS: Final = re.compile(r"(decimal|dec|numeric|char|varchar)(\(\s*\d+\s*(,\s*\d+\s*)?\))?")
_FIELD: Final = re.compile(
    r"(?:`(?P<quoted>[^`]+)`|(?P<plain>[A-Za-z0-9_]+))\s*[: ]\s*(?P<type>.+?)(?:\s+not\s+null)?(?:\s+comment\s+'.*')?",
    re.IGNORECASE | re.DOTALL,
)


def columns(ddl: str) -> dict[str, str]:
    """The columns of a schema and their types, in order. Refuses what Spark would not understand."""
    found: dict[str, str] = {}
    for part in split_outside(ddl):
        match = _FIELD.fullmatch(part.strip())
        if match is None:
            raise ConfigError(f"{part.strip()!r} is not a column; write a name and a type, for example: id bigint")
        name = match["quoted"] or match["plain"]
        if name.lower() in map(str.lower, found):
            raise ConfigError(f"the column {name} is there twice")
        found[name] = checked_type(match["type"].strip())
    return found


def checked_type(text: str) -> str:
    """The type in lower case; raises if there is no such type."""
    lower = text.lower()
    if lower in _SIMPLE or _WITH_ARGUMENTS.fullmatch(lower):
        return lower
    word, bracket, rest = text.partition("<")
    if bracket and word.strip().lower() in _NESTED and rest.rstrip().endswith(">"):
        inside = rest.rstrip()[:-1]
        if word.strip().lower() == "struct":
            columns(inside)
        else:
            for each in split_outside(inside):
                checked_type(each.strip())
        return text
    raise ConfigError(f"there is no type {text!r}{suggestion(lower, (*_SIMPLE, *_NESTED, 'decimal(10,2)'))}")


def split_outside(text: str) -> list[str]:
    """At commas that are in no brackets."""
    parts, depth, begun = [], 0, 0
    for at, character in enumerate(text):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begun:at])
            begun = at + 1
    parts.append(text[begun:])
    return [part for part in parts if part.strip()]


def quoted(name: str) -> str:
    """A name as it stands in a schema or in SQL, whatever is in it."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else "`" + name.replace("`", "``") + "`"


_SYNONYMS: Final = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "timestamp_ltz": "timestamp", "decimal": "decimal(10,0)", "dec": "decimal(10,0)", "numeric": "decimal(10,0)",
}  # fmt: skip


def parse_columns(ddl: str) -> Struct:
    """The columns of a schema as values."""
    return struct_of((name, parse_type(text)) for name, text in columns(ddl).items())


def parse_type(text: str) -> Type:
    word, bracket, rest = text.strip().partition("<")
    word = word.strip().lower()
    if bracket:
        inside = rest.rstrip()[:-1]
        if word == "struct":
            return parse_columns(inside)
        types = [parse_type(each) for each in split_outside(inside)]
        if len(types) != (2 if word == "map" else 1):
            raise ConfigError(f"{text!r} has {len(types)} types in brackets")
        return Map(types[0], types[1]) if word == "map" else Array(types[0])
    if word.startswith(("char", "varchar")):
        return "string"
    if "(" in word:
        precision, _, scale = word.partition("(")[2].rstrip(")").partition(",")
        return f"decimal({int(precision)},{int(scale or 0)})"
    return _SYNONYMS.get(word, word)
