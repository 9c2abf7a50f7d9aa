"""Parsing and printing of JSON in the registry."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, NoReturn

from ottla.registry.errors import InvalidSchema

if TYPE_CHECKING:
    from ottla.core.json_values import Json


class Exact(float):
    """A number with a fraction or exponent that keeps its text: comparisons must not round."""

    text: str

    def __new__(cls, text: str) -> Exact:
        number = super().__new__(cls, text)
        if math.isinf(number):
            raise InvalidSchema(f"{text} is too large a number")
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text


_LARGEST_DIGITS: Final = 4000
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?")


def _whole(text: str) -> int:
    if len(text) > _LARGEST_DIGITS:
        raise InvalidSchema(f"a number of {len(text)} digits is not supported")
    return int(text)


def _refused(text: str) -> NoReturn:
    raise InvalidSchema(f"{text} is not valid JSON")


def parse_json(text: str) -> Json:
    """Parse a JSON document; keeps the order of keys."""
    try:
        parsed: Json = json.loads(text, parse_float=Exact, parse_int=_whole, parse_constant=_refused)
    except (ValueError, RecursionError) as wrong:
        raise InvalidSchema(
            f"not valid JSON: {wrong}" if isinstance(wrong, ValueError) else "nested too deeply"
        ) from None
    return parsed


def compact(value: object, *, sort_keys: bool = False) -> str:
    """JSON without white space, in the order of the keys or sorted."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)


def exact_number(value: Json) -> int | Decimal | None:
    """A number in a schema, for comparisons without rounding."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value
    text = repr(value)
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None
