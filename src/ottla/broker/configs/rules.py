"""Constraints of values beyond their type. Each rule has a text for error messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

_REPLICA: Final = r"[0-9]+:[0-9]+"


class Rule(Struct, frozen=True):
    text: str
    """The text after "must be" in error messages."""
    holds: Callable[[Any], bool]
    """Called only with values of the config's type."""


def at_least(least: int) -> Rule:
    return Rule(f"at least {least}", lambda value: value >= least)


def between(least: int, most: int) -> Rule:
    return Rule(f"from {least} to {most}", lambda value: least <= value <= most)


def one_of(*values: str) -> Rule:
    return Rule(f"one of {', '.join(values)}", lambda value: value in values)


def items_of(*values: str) -> Rule:
    return Rule(f"a list of {' and '.join(values)}, or empty", lambda value: set(value) <= set(values))


GZIP_LEVEL: Final = Rule("from 1 to 9, or -1", lambda value: value == -1 or 1 <= value <= 9)

REPLICAS: Final = Rule(
    "* or a list of partition:broker, such as 0:101,1:102",
    lambda value: value == ("*",) or all(re.fullmatch(_REPLICA, item) for item in value),
)

NO_TIERED_STORAGE: Final = Rule("false: this broker has no tiered storage", lambda value: value is False)
