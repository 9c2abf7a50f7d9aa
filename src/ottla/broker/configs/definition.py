"""The definition of a config: its name, type, constraints and documentation."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.configs.rules import Rule

Value: TypeAlias = bool | int | float | str | tuple[str, ...]
"""A config value in the broker; on the wire and in the catalog it is text."""


class ConfigType(IntEnum):
    """Config types, with the numbers of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Definition(Struct, frozen=True, kw_only=True):
    name: str
    type: ConfigType
    default: Value | None
    """None if the config has no default value."""
    rule: Rule | None = None
    """The constraint beyond the type."""
    documentation: str
    broker_name: str | None = None
    """For a topic config: the broker config that is its default."""
    fallbacks: tuple[str, ...] = ()
    """For a broker config without a value: its fallbacks, such as hours for milliseconds."""
    is_read_only: bool = False
    """Whether it can be set only at the start, not at run time."""
    is_hidden: bool = False
    """Whether it is omitted from descriptions unless it is set."""

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD


Definitions: TypeAlias = "Mapping[str, Definition]"
"""By name, in alphabetical order."""


def by_name(*tables: tuple[Definition, ...]) -> dict[str, Definition]:
    definitions = sorted((one for table in tables for one in table), key=lambda one: one.name)
    return {one.name: one for one in definitions}
