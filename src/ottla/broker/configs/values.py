"""Conversion of config values between text, as on the wire and in the catalog, and their type."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from ottla.broker.configs.definition import ConfigType, Definition, Value
from ottla.core.config_values import shorten
from ottla.core.errors import InvalidConfig

if TYPE_CHECKING:
    from ottla.broker.configs.definition import Definitions

_INTEGER: Final = r"[+-]?[0-9]+"
# Rejects NaN, which would pass every comparison with a limit, and Java's hexadecimal and suffixed forms.
_DECIMAL: Final = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
# Longer texts are not meaningful numbers, and expensive to parse and compare.
_LONGEST_NUMBER: Final = 30
_BOOLEANS: Final = {"true": True, "false": False}


def parse(definition: Definition, text: str) -> Value:
    """Raises InvalidConfig if the text is not of the config's type, or breaks its rule."""
    value = parse_unruled(definition, text)
    rule = definition.rule
    if rule is not None and not rule.holds(value):
        raise _invalid(definition, to_text(value), rule.text)
    return value


def parse_unruled(definition: Definition, text: str) -> Value:
    """Raises InvalidConfig if the text is not of the config's type."""
    trimmed = text.strip()
    match definition.type:
        case ConfigType.BOOLEAN:
            flag = _BOOLEANS.get(trimmed.lower())
            if flag is None:
                raise _invalid(definition, text, "true or false")
            return flag
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            return _integer(definition, text, trimmed)
        case ConfigType.DOUBLE:
            return _decimal(definition, text, trimmed)
        case ConfigType.LIST:
            items = split_list(trimmed)
            if "" in items:
                raise _invalid(definition, text, "a list without empty items")
            return items
        case ConfigType.PASSWORD:
            return text
    return trimmed


def split_list(text: str) -> tuple[str, ...]:
    """The items of a list, in order and without duplicates."""
    if not text.strip():
        return ()
    return tuple(dict.fromkeys(item.strip() for item in text.split(",")))


def to_text(value: Value) -> str:
    """The value as Kafka formats it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def normalised(definition: Definition, text: str) -> str:
    """The normal form of this value: trimmed, without leading zeros, lists without duplicates."""
    return to_text(parse(definition, text))


def find(definitions: Definitions, kind: str, name: str) -> Definition:
    """Raises InvalidConfig for an unknown name; the message suggests a similar one."""
    definition = definitions.get(name)
    if definition is None:
        nearest = _nearest(definitions, name)
        hint = f"; did you mean {nearest}?" if nearest else ""
        raise InvalidConfig(f"Unknown {kind} config name: {shorten(name)}{hint}")
    return definition


def _nearest(definitions: Definitions, name: str) -> str | None:
    for definition in definitions.values():
        if definition.broker_name == name:
            return definition.name  # the broker config of the same meaning
    from ottla.core.closest import closest  # only for errors

    return closest(name.strip().lower().replace("_", ".").replace("-", "."), definitions)


def _integer(definition: Definition, text: str, trimmed: str) -> int:
    bits = _BITS[definition.type]
    if len(trimmed) <= _LONGEST_NUMBER and re.fullmatch(_INTEGER, trimmed):
        value = int(trimmed)
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return value
    raise _invalid(definition, text, f"a whole number of {bits} bits ({definition.type.name})")


def _decimal(definition: Definition, text: str, trimmed: str) -> float:
    if len(trimmed) <= _LONGEST_NUMBER and re.fullmatch(_DECIMAL, trimmed):
        value = float(trimmed)
        if math.isfinite(value):
            return value
    raise _invalid(definition, text, "a number")


def _invalid(definition: Definition, text: str, allowed: str) -> InvalidConfig:
    quoted = text if text and text.isprintable() else repr(text)
    shown = "" if definition.is_sensitive else f" {shorten(quoted)}"
    return InvalidConfig(f"Invalid value{shown} for configuration {definition.name}: must be {allowed}")
