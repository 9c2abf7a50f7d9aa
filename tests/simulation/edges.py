"""Simulated time, randomness and threads; installed before the product is imported."""

from __future__ import annotations

import os
import random
import sys
import time
from concurrent import futures
from functools import cache
from typing import TYPE_CHECKING, Any
from zlib import crc32

from . import blocking
from .parties import current_party

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_FIRST_MS = 1_700_000_000_000


class Edges:
    """The time and the chance of the history that is running."""

    def __init__(self) -> None:
        self.now_s: Callable[[], float] = lambda: 1000.0
        self.chance = random.Random(0)  # noqa: S311

    def wall_ms(self) -> int:
        party = current_party()
        now_s = self.now_s()
        if party is None:
            return _FIRST_MS + int(now_s * 1000)
        drifted_s = (now_s - party.began_s) * party.drift
        return _FIRST_MS + int((now_s + drifted_s) * 1000) + party.wall_offset_ms


EDGES = Edges()


class Serial:
    """A thread pool that runs one task after the other."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def map(self, what: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
        return [what(*each) for each in zip(*items, strict=False)]

    def shutdown(self, **_: Any) -> None:
        pass

    def __enter__(self) -> Serial:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class SimClock:
    """As `ottla.core.clock.Clock`."""

    def now_ms(self) -> int:
        return EDGES.wall_ms()

    def monotonic_s(self) -> float:
        return EDGES.now_s()


def _now_s() -> float:
    return EDGES.now_s()


def _random_bytes(size: int) -> bytes:
    return EDGES.chance.randbytes(size)


def _boot_id() -> str:
    party = current_party()
    return "" if party is None else party.boot_id


def install() -> None:
    assert not any(name.startswith("ottla.") for name in sys.modules), "too late: the product has the real ones"
    time.monotonic = time.perf_counter = _now_s
    time.clock_gettime = lambda _: EDGES.now_s()
    time.monotonic_ns = time.perf_counter_ns = lambda: int(EDGES.now_s() * 1e9)
    time.time = lambda: EDGES.wall_ms() / 1000
    time.time_ns = lambda: EDGES.wall_ms() * 1_000_000
    time.sleep = blocking.sleep
    os.urandom = random._urandom = _random_bytes  # type: ignore[attr-defined]
    # Lock files hold it, and it differs in its length.
    os.getpid = lambda: 1
    futures.ThreadPoolExecutor = Serial  # type: ignore[misc, assignment]


def install_in_product() -> None:
    from ottla.cluster import catalog, membership, mirror, node
    from ottla.dmqp import listening
    from ottla.net import binding
    from ottla.storage.folder import folder_identity

    from .network import Sockets, bind

    listening.socket = Sockets  # type: ignore[attr-defined]
    binding.bind = bind
    folder_identity.boot_id = _boot_id  # type: ignore[attr-defined]
    for module in (catalog, membership, mirror, node):
        module.threading = blocking.Threading  # type: ignore[attr-defined]

    _number_what_is_kept_in_sets()


def _number_what_is_kept_in_sets() -> None:
    """Hash objects by number, because addresses and string hashes differ between runs."""
    from ottla.broker.partition import Partition
    from ottla.broker.requests.waiting import ByteWait
    from ottla.core.ids import TopicId, TopicPartition
    from ottla.dmqp.connection import ShardConnection
    from ottla.net.connection import Connection

    ByteWait.__hash__ = lambda wait: hash(wait._future)  # type: ignore[attr-defined, method-assign]
    checksum = cache(lambda topic: crc32(topic.encode()))
    TopicPartition.__hash__ = lambda at: hash((checksum(at.topic), at.partition))  # type: ignore[attr-defined, method-assign]
    # A struct's hash includes the address of its class.
    TopicId.__hash__ = lambda topic: hash(topic.value)  # type: ignore[attr-defined, method-assign]
    Partition.__hash__ = lambda partition: hash(partition.at)  # type: ignore[attr-defined, method-assign]
    ShardConnection.__hash__ = lambda link: hash(link.gone)  # type: ignore[attr-defined, method-assign]
    Connection.__hash__ = lambda link: crc32(f"{link.peer} {link.local}".encode())  # type: ignore[attr-defined, method-assign]
