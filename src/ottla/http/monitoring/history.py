"""The traffic of the last hours, sampled by the broker, so that charts begin with a past.

A fixed amount of memory: MOST_SAMPLES numbers of 8 bytes for each of the SERIES, about 50 KiB.
"""

from __future__ import annotations

import asyncio
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.broker import Broker
    from ottla.http.framework.endpoints import Call

INTERVAL_S: Final = 20
MOST_SAMPLES: Final = 6 * 3600 // INTERVAL_S
UNKNOWN: Final = -1
_TURN_TOPICS: Final = 50


class Sample(NamedTuple):
    time_ms: int
    messages: int
    """Written since the start of the broker, as far as it was seen."""
    kafka_bytes_in: int
    kafka_bytes_out: int
    connections: int
    size_bytes: int
    """UNKNOWN while a log was not looked at since the start."""


class TotalsHistory(Struct, frozen=True, kw_only=True):
    """Columns of equal length, oldest first; counters count from the start of the broker."""

    interval_ms: int
    time_ms: list[int]
    messages: list[int]
    kafka_bytes_in: list[int]
    kafka_bytes_out: list[int]
    connections: list[int]
    size_bytes: list[int]
    """-1 where it is unknown."""


class History:
    """The newest samples, in a ring."""

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        self._most = most
        self._columns = [array("q") for _ in Sample._fields]
        self._next = 0

    def add(self, sample: Sample) -> None:
        for column, value in zip(self._columns, sample, strict=True):
            if len(column) < self._most:
                column.append(value)
            else:
                column[self._next] = value
        self._next = (self._next + 1) % self._most

    def columns(self) -> dict[str, list[int]]:
        is_full = len(self._columns[0]) == self._most
        at = self._next if is_full else 0
        return {name: [*column[at:], *column[:at]] for name, column in zip(Sample._fields, self._columns, strict=True)}


class OpenLogs(NamedTuple):
    """The open logs of a topic: how many, and the sum of their next offsets."""

    number: int
    written: int


def written_since(before: Mapping[str, OpenLogs], now: Mapping[str, OpenLogs]) -> int:
    """Messages written between two looks.

    A topic of which a log was opened or closed meanwhile counts from the next look on: messages from before it was
    opened must not count as new.
    """
    return sum(
        max(0, logs.written - before[name].written)
        for name, logs in now.items()
        if name in before and before[name].number == logs.number
    )


class Sampler:
    """Samples a broker. Logs are not opened for it, and closed ones not looked at."""

    def __init__(self, broker: Broker) -> None:
        self.history = History()
        self._broker = broker
        self._messages = 0
        self._logs: dict[str, OpenLogs] = {}

    async def run(self) -> None:
        while True:
            await self.sample()
            await asyncio.sleep(INTERVAL_S)

    async def sample(self) -> None:
        logs, size_bytes = await self._look()
        self._messages += written_since(self._logs, logs)
        self._logs = logs
        broker = self._broker
        apis = broker.dispatcher.stats
        self.history.add(
            Sample(
                time_ms=broker.clock.now_ms(),
                messages=self._messages,
                kafka_bytes_in=sum(api.bytes_in for api in apis),
                kafka_bytes_out=sum(api.bytes_out for api in apis),
                connections=len(broker.listener.connections),
                size_bytes=size_bytes,
            )
        )

    async def _look(self) -> tuple[dict[str, OpenLogs], int]:
        found: dict[str, OpenLogs] = {}
        size_bytes = unknown = 0
        for number, (name, state) in enumerate(list(self._broker.topics.by_name.items()), 1):
            count = written = 0
            for partition in state.partitions:
                if partition.is_open:
                    count += 1
                    written += partition.log.next_offset
                if (size := partition.known_size) is not None:
                    size_bytes += size
                elif partition.is_here:
                    unknown += 1
            found[name] = OpenLogs(count, written)
            if number % _TURN_TOPICS == 0:
                await asyncio.sleep(0)
        return found, UNKNOWN if unknown else size_bytes


async def show_history(call: Call) -> TotalsHistory:
    call.check_cluster()
    return TotalsHistory(interval_ms=INTERVAL_S * 1000, **call.http_state.sampler.history.columns())


ENDPOINTS: Final = (
    Endpoint(
        "GET", "/v1/totals/history", show_history, "Counters of the broker over the last hours", answer=TotalsHistory
    ),
)
