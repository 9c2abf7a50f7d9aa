"""Delivery state of the share partitions that this cluster node leads, persisted by a coordinator.

Changes are applied here at once, and answered after the coordinator has persisted them. If it rejects one, the local
state of the partition is dropped, and read again when it is next needed: the coordinator's state is authoritative.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ApiError, ErrorCode, NotLeaderOrFollower
from ottla.share.partition import SharePartition
from ottla.share.records import changes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ottla.broker.partition import Partition
    from ottla.broker.share.state_client import ShareStateClient
    from ottla.share.fates import Change
    from ottla.share.formats import StateKey

_logger: Final = logging.getLogger(__name__)

_LOADED_WITHIN_S: Final = 1.0
_DEPOSED: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})


class Sent(NamedTuple):
    """A pending change to the coordinator."""

    answer: asyncio.Future[None]

    async def safe(self) -> None:
        await asyncio.shield(self.answer)


class LedStates:
    def __init__(
        self,
        questions: ShareStateClient,
        first_offset: Callable[[str, Partition], int],
        dropped: Callable[[StateKey], None],
    ) -> None:
        self._questions = questions
        self._first_offset = first_offset
        self._dropped = dropped
        self._led: dict[StateKey, _Led] = {}
        self._loading: dict[StateKey, asyncio.Task[None]] = {}
        self._ending: dict[StateKey, asyncio.Task[None]] = {}
        """Pending writes of a dropped partition; they end before its state is read again."""

    async def stop(self) -> None:
        tasks = [*self._loading.values(), *self._ending.values()]
        tasks += [led.task for led in self._led.values() if led.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Finding

    async def ready(self, wanted: Mapping[StateKey, Partition]) -> dict[StateKey, ApiError]:
        """Load the states of these; returns the errors of those that failed."""
        loading: dict[StateKey, asyncio.Task[None]] = {}
        for key, partition in wanted.items():
            led = self._led.get(key)
            if led is not None and led.leader_epoch != partition.leader_epoch:
                self.drop(key)
            if key not in self._led:
                loading[key] = self._begin_loading(key, partition)
        if loading:
            await asyncio.wait(loading.values(), timeout=_LOADED_WITHIN_S)
        return {key: error for key, task in loading.items() if (error := _error_of(task)) is not None}

    def rules_of(self, key: StateKey) -> SharePartition | None:
        led = self._led.get(key)
        return None if led is None else led.rules

    def _begin_loading(self, key: StateKey, partition: Partition) -> asyncio.Task[None]:
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.get_running_loop().create_task(self._load(key, partition))
            task.add_done_callback(lambda _: self._loading.pop(key, None))
            task.add_done_callback(_look_at)
        return task

    async def _load(self, key: StateKey, partition: Partition) -> None:
        ending = self._ending.pop(key, None)
        if ending is not None:
            await asyncio.wait([ending])
        partition.check_leads()
        leader_epoch = partition.leader_epoch
        read = await self._questions.read(key, leader_epoch)
        rules = SharePartition.restored(read.start_offset, changes_of(read.state_batches))
        if read.start_offset < 0:
            start = self._first_offset(key.group_id, partition)
            await self._questions.write(key, (read.state_epoch, leader_epoch), start, ())
            rules = SharePartition(start)
        partition.check_leads()
        if partition.leader_epoch != leader_epoch:
            raise NotLeaderOrFollower(f"{partition.at} has another leader")
        self._led[key] = _Led(rules, read.state_epoch, leader_epoch)

    # Writing

    def change(self, key: StateKey, start: int, changes: Sequence[Change]) -> Sent:
        led = self._led[key]
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_look_at)
        led.waiting.append((start, changes, answer))
        if led.task is None:
            led.task = asyncio.get_running_loop().create_task(self._write_on(key, led))
        return Sent(answer)

    def changed(self, key: StateKey) -> None:
        """Nothing to do: the coordinator writes snapshots."""

    async def _write_on(self, key: StateKey, led: _Led) -> None:
        """Write changes, one request at a time; later changes are sent together."""
        while led.waiting:
            taken, led.waiting = led.waiting, []
            changes = [change for _, some, _ in taken for change in some]
            try:
                await self._questions.write(key, (led.state_epoch, led.leader_epoch), taken[-1][0], changes)
            except ApiError as refused:
                _logger.info("group %s: reloading its state: %s", key.group_id, refused)
                self._fail(taken + led.waiting, refused)
                led.waiting = []
                if self._led.get(key) is led:
                    self.drop(key)
                break
            for _, _, answer in taken:
                answer.set_result(None)
        led.task = None

    def _fail(self, taken: Sequence[_Waiting], refused: ApiError) -> None:
        error = NotLeaderOrFollower(str(refused)) if refused.code in _DEPOSED else refused
        for _, _, answer in taken:
            answer.set_exception(error)

    # Forgetting

    def drop(self, key: StateKey) -> None:
        led = self._led.pop(key, None)
        if led is not None:
            task = led.task
            if task is not None and task is not asyncio.current_task():
                self._ending[key] = task
                task.add_done_callback(lambda _: self._ending.pop(key, None))
            self._dropped(key)

    def drop_all(self, is_meant: Callable[[StateKey], bool]) -> None:
        for key in [each for each in self._led if is_meant(each)]:
            self.drop(key)


_Waiting = tuple[int, "Sequence[Change]", asyncio.Future[None]]


class _Led:
    __slots__ = ("leader_epoch", "rules", "state_epoch", "task", "waiting")

    def __init__(self, rules: SharePartition, state_epoch: int, leader_epoch: int) -> None:
        self.rules = rules
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.waiting: list[_Waiting] = []
        self.task: asyncio.Task[None] | None = None


def _look_at(answer: asyncio.Future[None]) -> None:
    """Retrieve the outcome of a write, which some callers do not await."""
    if not answer.cancelled():
        answer.exception()


def _error_of(loading: asyncio.Task[None]) -> ApiError | None:
    if not loading.done():
        return NotLeaderOrFollower("the state of the group is being loaded")
    if loading.cancelled():
        return NotLeaderOrFollower("this broker is stopping")
    error = loading.exception()
    if isinstance(error, ApiError):
        is_unknown = error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        is_passing = error.code in _DEPOSED or (error.code.is_retriable and not is_unknown)
        return NotLeaderOrFollower(str(error)) if is_passing else error
    if error is not None:
        raise error
    return None
