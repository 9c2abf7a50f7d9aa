"""Explains an invalid query or body, with valid alternatives."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import msgspec
from msgspec import inspect

from ottla.core.closest import closest

_LONGEST: Final = 500
"""Messages are truncated to this length: they quote the input, which may be as long as a body."""
_WRONG: Final = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?", re.DOTALL)
_STEP: Final = re.compile(r"\.(?P<field>\w+)|\[[^\]]*\]")
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_UNKNOWN_VALUE: Final = re.compile(r"Invalid enum value '?(?P<name>.*?)'?", re.DOTALL)


def explained(wrong: msgspec.ValidationError, kind: object) -> str:
    """msgspec's message, with the valid names or values."""
    text = str(wrong)
    if len(text) > _LONGEST:
        return f"{text[:_LONGEST]}…"
    said = _WRONG.fullmatch(text)
    what, path = (said["what"], said["path"]) if said else (text, None)
    place = f", at {path}" if path else ""
    at = _at(_described(kind), path or "")
    if (field := _UNKNOWN_FIELD.fullmatch(what)) and isinstance(at, inspect.StructType):
        return f"unknown field `{field['name']}`{place}; {_instead(field['name'], _names(at))}"
    if (value := _UNKNOWN_VALUE.fullmatch(what)) and isinstance(at, inspect.LiteralType | inspect.EnumType):
        return f"invalid value `{value['name']}`{place}; {_instead(value['name'], _values(at))}"
    return what.replace(" | null`", "`") + place


def _instead(given: str, known: list[str]) -> str:
    close = closest(given, known)
    return f"known: {', '.join(f'`{name}`' for name in known)}" if close is None else f"did you mean `{close}`?"


@cache
def _described(kind: object) -> inspect.Type:
    return inspect.type_info(kind)


def _names(struct: inspect.StructType) -> list[str]:
    return [field.encode_name for field in struct.fields]


def _values(choice: inspect.LiteralType | inspect.EnumType) -> list[str]:
    if isinstance(choice, inspect.LiteralType):
        return [str(value) for value in choice.values]
    return [str(member.value) for member in choice.cls]


def _at(kind: inspect.Type, path: str) -> inspect.Type:
    """The type at a path such as `$.messages[0].key`."""
    here = _plain(kind)
    for step in _STEP.finditer(path):
        if isinstance(here, inspect.StructType) and step["field"]:
            here = next((field.type for field in here.fields if field.encode_name == step["field"]), here)
        elif isinstance(here, inspect.DictType):
            here = here.value_type
        elif isinstance(here, inspect.CollectionType):
            here = here.item_type
        here = _plain(here)
    return here


def _plain(kind: inspect.Type) -> inspect.Type:
    """The type without annotations and without null."""
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        others = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _plain(others[0]) if len(others) == 1 else kind
    return kind
