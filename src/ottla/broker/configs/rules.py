"""What a value must be beyond its type. Each rule knows how to say itself in an error message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.configs.definition import Value

_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+")


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    """What follows "must be"."""
    holds: Callable[[Value], bool]


def at_least(least: int) -> Rule:
    return Rule(f"at least {least}", lambda value: _number(value) >= least)


def between(least: int, most: int) -> Rule:
    return Rule(f"from {least} to {most}", lambda value: least <= _number(value) <= most)


def one_of(*values: str) -> Rule:
    return Rule(f"one of {', '.join(values)}", lambda value: value in values)


def items_of(*values: str) -> Rule:
    return Rule(f"a list of {' and '.join(values)}, or empty", lambda value: set(_items(value)) <= set(values))


GZIP_LEVEL: Final = Rule("from 1 to 9, or -1", lambda value: value == -1 or 1 <= _number(value) <= 9)

REPLICAS: Final = Rule(
    "* or a list of partition:broker, such as 0:101,1:102",
    lambda value: value == ("*",) or all(_REPLICA.fullmatch(item) for item in _items(value)),
)

NO_TIERED_STORAGE: Final = Rule("false: this broker has no tiered storage", lambda value: value is False)


def _number(value: Value) -> int | float:
    assert isinstance(value, int | float)
    return value


def _items(value: Value) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value
