"""The faults of a broker: for which requests they apply, and how often they were triggered."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from ottla.broker.faults import effects
from ottla.broker.faults.disk import DiskFaults
from ottla.broker.faults.fault import Fault
from ottla.broker.faults.filters import Filter, guess
from ottla.broker.faults.gate import Gate
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any, Unpack

    from ottla.broker.broker import Broker
    from ottla.broker.faults.effects import Call
    from ottla.broker.faults.filters import SeenRequest, Where
    from ottla.broker.requests.answers import Answer

    Effect = Callable[[Call], Coroutine[Any, Any, Answer]]

_OF_LEADERS: Final = frozenset({"Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch"})


class Faults:
    """If several faults match a request, the oldest one is triggered; only one per request."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._all: dict[int, Fault] = {}
        self._of_requests: dict[int, Effect] = {}
        self._disk = DiskFaults()
        self._broker: Broker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0

    # Requests

    def error(self, code: ErrorCode | str, *, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Answer with this error code, without any effect: the next `times` requests, or all.

        If a topic or partition is given, others in the same request are served.
        """
        known = code if isinstance(code, ErrorCode) else _code_named(code)
        meant = Filter(**where)
        return self._refuse(Fault("error", meant, times, detail=known.name), known)

    def lose_leadership(self, topic: str, partition: int | None = None, *, times: int | None = None) -> Fault:
        """Answer that this broker is not the leader of this partition, or of all partitions of the topic."""
        meant = Filter(topic=topic, partition=partition, apis=_OF_LEADERS)
        return self._refuse(Fault("lose_leadership", meant, times), ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _refuse(self, fault: Fault, code: ErrorCode) -> Fault:
        from ottla.broker.faults.refusing import refuse  # imports the response types of authorization

        return self._arm(fault, lambda call: refuse(call, code, fault.where))

    def delay(self, seconds: float, *, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Wait this long before serving; later requests of the same connection wait too."""
        fault = Fault("delay", Filter(**where), times, detail=f"of {_not_negative(seconds):g} s")
        return self._arm(fault, partial(effects.delay, seconds=seconds))

    def throttle(self, seconds: float, *, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Serve it, report a quota violation, and throttle this client for this long."""
        fault = Fault("throttle", Filter(**where), times, detail=f"for {_not_negative(seconds):g} s")
        return self._arm(fault, partial(effects.throttle, seconds=seconds))

    def drop(self, *, after_effect: bool = False, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Close the connection instead of answering: before the request has any effect, or after."""
        fault = Fault("drop", Filter(**where), times, detail=f"{'after' if after_effect else 'before'} the effect")
        return self._arm(fault, partial(effects.drop, after_effect=after_effect))

    def truncate(self, *, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Process the request, send half of the response, and close the connection."""
        return self._arm(Fault("truncate", Filter(**where), times), effects.truncate)

    def corrupt(self, *, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Corrupt a batch on its way to a consumer, so that its checksum is wrong. The log stays intact."""
        meant = Filter(**where, apis=frozenset({"Fetch"}))
        fault = Fault("corrupt", meant, times, counts_itself=True)
        return self._arm(fault, lambda call: effects.corrupt(call, fault, meant))

    def pause(self, *, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Do not answer until the fault is removed; then serve all held requests."""
        gate = Gate()
        fault = self._arm(Fault("pause", Filter(**where), times), partial(effects.hold, gate=gate))
        remove = fault.removal

        def resume() -> None:
            remove()
            gate.open()

        fault.removal = resume
        return fault

    # Groups and transactions; these take effect immediately

    def force_rebalance(self, group: str) -> Fault:
        """Trigger a rebalance of the group."""
        meant = Filter(group=group)
        return self._done(Fault("force_rebalance", meant), lambda broker: broker.groups.rebalance(group))

    def expire_session(self, group: str, client_id: str | None = None) -> Fault:
        """Expire the members of the group, or those of one client. Triggered once per member."""
        fault = Fault("expire_session", Filter(group=group, client_id=client_id))
        return self._done(fault, lambda broker: broker.groups.expire_sessions(group, client_id))

    def expire_transaction(self, transactional_id: str) -> Fault:
        """Abort this producer's open transaction and fence it, as after a timeout."""
        fault = Fault("expire_transaction", Filter(transactional_id=transactional_id))
        return self._done(fault, lambda broker: broker.transactions.expire(transactional_id))

    # The disk

    def fail_fsync(self, *, topic: str | None = None, partition: int | None = None, times: int | None = None) -> Fault:
        """Fail fsyncs. The partition is offline from then on, as with a real disk."""
        fault = Fault("fail_fsync", Filter(topic=topic, partition=partition), times)
        return self._keep(fault, self._disk.failing)

    def fill_disk(self, *, topic: str | None = None, partition: int | None = None, times: int | None = None) -> Fault:
        """Simulate a full disk: no write succeeds, not even offset commits, unless a topic is given."""
        fault = Fault("fill_disk", Filter(topic=topic, partition=partition), times)
        return self._keep(fault, self._disk.full)

    # All of them

    def __iter__(self) -> Iterator[Fault]:
        return iter(tuple(self._all.values()))

    def clear(self) -> None:
        for fault in self:
            fault.remove()

    def _arm(self, fault: Fault, effect: Effect) -> Fault:
        self._of_requests[self._number(fault)] = effect
        return fault

    def _keep(self, fault: Fault, among: dict[int, Fault]) -> Fault:
        among[self._number(fault)] = fault
        return fault

    def _done(self, fault: Fault, strike: Callable[[Broker], int]) -> Fault:
        struck = self._in_loop(strike)
        if not struck:
            raise LookupError(f"{fault.kind}: nothing matches {fault.where}")
        self._number(fault)
        fault.strike(struck)
        return fault

    def _number(self, fault: Fault) -> int:
        fault.id = next(self._numbers)
        fault.removal = partial(self._remove, fault.id)
        self._all[fault.id] = fault
        return fault.id

    def _remove(self, number: int) -> None:
        self._of_requests.pop(number, None)
        self._disk.failing.pop(number, None)
        self._disk.full.pop(number, None)
        self._all.pop(number, None)

    # The broker

    def watch(self, broker: Broker) -> None:
        """Attach to this broker; called in its event loop."""
        self._broker = broker
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._disk.watch(broker)

    def forget_broker(self) -> None:
        self.clear()
        self._broker = self._loop = None

    def effect_on(self, seen: SeenRequest) -> Effect | None:
        for number, effect in tuple(self._of_requests.items()):
            fault = self._all.get(number)
            if fault is None or fault.is_spent or not fault.where.matches(seen):
                continue
            if not fault.counts_itself:
                fault.strike()
            return effect
        return None

    def _in_loop(self, work: Callable[[Broker], int]) -> int:
        if self._broker is None or self._loop is None:
            raise RuntimeError("the broker is not running")
        broker, loop = self._broker, self._loop
        if threading.get_ident() == self._thread_id:
            return work(broker)

        async def done() -> int:
            return work(broker)

        return asyncio.run_coroutine_threadsafe(done(), loop).result()


def _code_named(name: str) -> ErrorCode:
    try:
        return ErrorCode[name]
    except KeyError:
        raise ValueError(f"no such error code: {name}{guess(name, ErrorCode.__members__)}") from None


def _not_negative(seconds: float) -> float:
    if seconds < 0:
        raise ValueError(f"seconds must be 0 or more, got {seconds:g}")
    return seconds
