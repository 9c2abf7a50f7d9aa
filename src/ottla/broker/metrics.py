"""Counters of requests and disk operations: plain numbers, updated in place, read by exporters."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

from ottla.core.errors import ErrorCode
from ottla.wire.apis import PRODUCE
from ottla.wire.declare import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.wire.apis import Api
    from ottla.wire.declare import Response

_BITS: Final = 64
_SHOWN_BITS: Final = range(10, 37, 2)
"""From a microsecond to a minute, in powers of four."""
_NANOSECONDS: Final = 1_000_000_000
_CODES: Final = ("error_code", "partition_error_code")
_CODES_IN_A_TURN: Final = 5000


class Histogram:
    """A histogram of durations by the bit length of their nanoseconds, the cheapest bucketing."""

    __slots__ = ("by_bits", "total_ns")

    def __init__(self) -> None:
        self.by_bits = [0] * (_BITS + 1)
        self.total_ns = 0

    def add(self, elapsed_ns: int) -> None:
        self.by_bits[elapsed_ns.bit_length()] += 1
        self.total_ns += elapsed_ns

    @property
    def count(self) -> int:
        return sum(self.by_bits)

    @property
    def total_s(self) -> float:
        return self.total_ns / _NANOSECONDS

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Upper bounds in seconds, and the number of durations below each."""
        for bits in _SHOWN_BITS:
            yield (1 << bits) / _NANOSECONDS, sum(self.by_bits[: bits + 1])


class ApiStats(Histogram):
    """Metrics of the requests of one API. Delayed requests count when they are answered."""

    __slots__ = ("bytes_in", "bytes_out", "errors", "finds_errors", "name")

    def __init__(self, api: Api) -> None:
        super().__init__()
        self.name = api.name
        self.bytes_in = 0
        self.bytes_out = 0
        self.errors: dict[str, int] = {}
        """The number of errors by name; a request for many partitions may count in several."""
        self.finds_errors = api is not PRODUCE
        """Whether responses are searched for errors. Produce responses are not, for speed: its handler counts errors.
        """

    def refused(self, code: int, count: int = 1) -> None:
        name = ErrorCode(code).name
        self.errors[name] = self.errors.get(name, 0) + count

    def note_errors(self, response: Response) -> None:
        for code in error_codes(response):
            self.refused(code)

    async def note_many_errors(self, response: Response) -> None:
        """Count the errors of a response in time slices, for responses that may be long."""
        codes = error_codes(response)
        while counts := Counter(islice(codes, _CODES_IN_A_TURN)):
            for code, count in counts.items():
                self.refused(code, count)
            if counts.total() == _CODES_IN_A_TURN:
                await asyncio.sleep(0)


def error_codes(response: Response) -> Iterator[int]:
    """All error codes of the response and its parts, except NONE."""
    return filter(None, _error_codes_of(type(response))(response))


@cache
def _error_codes_of(kind: type[Message]) -> Callable[[Any], Iterator[int]]:
    """Build a function that finds the error codes in messages of this type, at any depth."""
    code = next((name for name in _CODES if name in kind.__struct_fields__), None)
    parts = [(name, _error_codes_of(part)) for name, part in _message_lists(kind)]

    def find(message: object) -> Iterator[int]:
        if code is not None:
            yield getattr(message, code)
        for name, find_in in parts:
            for one in getattr(message, name) or ():
                yield from find_in(one)

    return find


def _message_lists(kind: type[Message]) -> Iterator[tuple[str, type[Message]]]:
    for name, hint in get_type_hints(kind).items():
        for part in _parts_of(hint):
            yield name, part


def _parts_of(hint: object) -> Iterator[type[Message]]:
    """The message type of a tuple field, also of a nullable one."""
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        if isinstance(arguments[0], type) and issubclass(arguments[0], Message):
            yield arguments[0]
    else:
        for argument in arguments:
            yield from _parts_of(argument)
