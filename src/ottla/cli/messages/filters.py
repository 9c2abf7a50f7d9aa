"""`--filter`: conditions on the records that `ottla consume` prints.

key=c1            key, value, partition, offset, timestamp or header.NAME, compared with a text or number
header.trace      the header exists
$.order.total>9   a field of a JSON value; $.items[0].sku for an item of a list
value~^refund     a regular expression that matches somewhere; !~ for one that does not

Operators are = != ~ !~ < <= > >=.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.client.consumer.record import ConsumerRecord

    Read = Callable[[ConsumerRecord[bytes, bytes]], Any]
    Condition = Callable[[ConsumerRecord[bytes, bytes]], bool]

_FORM: Final = re.compile(r"(?P<field>[^=!~<>]+?)\s*(?:(?P<operator>!=|!~|>=|<=|=|~|>|<)\s*(?P<wanted>.*))?", re.DOTALL)
_STEP: Final = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\[['\"](?P<quoted>[^'\"]+)['\"]\]")
_ORDERS: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_NUMBERS: Final[dict[str, Read]] = {
    "partition": lambda record: record.partition,
    "offset": lambda record: record.offset,
    "timestamp": lambda record: record.timestamp,
}
_TEXTS: Final[dict[str, Read]] = {
    "key": lambda record: _text(record.key),
    "value": lambda record: _text(record.value),
}


class _Missing:
    """A header or field that a record lacks; JSON's null is a value."""


_MISSING: Final = _Missing()


def all_of(given: Iterable[str]) -> Condition:
    """Whether a record meets all of these conditions; ConfigError if one is invalid."""
    conditions = [condition(text) for text in given]
    return lambda record: all(one(record) for one in conditions)


def condition(text: str) -> Condition:
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise ConfigError(f"--filter: expected a condition such as key=c1 or $.total>9, got {text!r}")
    read = _reader(form["field"])
    test = _test(form["operator"], form["wanted"])

    def holds(record: ConsumerRecord[bytes, bytes]) -> bool:
        found = read(record)
        return found is not _MISSING and test(found)

    return holds


def _reader(field: str) -> Read:
    if field in _NUMBERS or field in _TEXTS:
        return _NUMBERS.get(field) or _TEXTS[field]
    if field.startswith("header.") and len(field) > len("header."):
        name = field.removeprefix("header.")
        return lambda record: next((_text(value) for each, value in record.headers if each == name), _MISSING)
    if field.startswith("$"):
        steps = _steps(field)
        return lambda record: _at(record.value, steps)
    raise ConfigError(
        f"--filter: unknown field {field!r}; expected key, value, header.NAME, partition, offset, timestamp or $.path"
    )


def _steps(path: str) -> list[str | int]:
    found: list[str | int] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise ConfigError(f"--filter: invalid JSON path {path!r} (use e.g. $.order.items[0].sku)")
        found.append(int(step["index"]) if step["index"] else step["name"] or step["quoted"])
        at = step.end()
    return found


def _at(value: bytes | None, steps: list[str | int]) -> object:
    try:
        found = msgspec.json.decode(value or b"")
        for step in steps:
            # A name of a list, or an index of an object, is missing as well.
            found = found[step]
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return _MISSING
    return found


def _test(sign: str | None, wanted: str) -> Callable[[Any], bool]:
    if sign is None:
        return lambda _: True
    if sign in ("~", "!~"):
        try:
            pattern = re.compile(wanted)
        except re.error as wrong:
            raise ConfigError(f"--filter: invalid regular expression {wanted!r}: {wrong}") from None
        return lambda found: (pattern.search(_plain(found)) is not None) == (sign == "~")
    if sign in ("=", "!="):
        return lambda found: _equals(found, wanted) == (sign == "=")
    number = _number(wanted)
    if number is None:
        raise ConfigError(f"--filter: {sign} needs a number, got {wanted!r}")
    order = _ORDERS[sign]
    return lambda found: (given := _number(_plain(found))) is not None and order(given, number)


def _equals(found: object, wanted: str) -> bool:
    if isinstance(found, int | float) and not isinstance(found, bool):
        return found == _number(wanted)
    return _plain(found) == wanted


def _plain(found: object) -> str:
    """Text as it is, everything else as JSON."""
    return found if isinstance(found, str) else msgspec.json.encode(found).decode()


def _number(text: str) -> float | int | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _text(content: bytes | None) -> object:
    return _MISSING if content is None else content.decode(errors="backslashreplace")
