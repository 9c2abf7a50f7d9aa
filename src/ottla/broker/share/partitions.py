"""Share partitions: connects the rules in ottla.share.partition with their log, their clock and waiting fetches."""

from __future__ import annotations

import asyncio
import logging
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from ottla.broker.batches.inflating import AT_ONCE_BYTES
from ottla.broker.share.dead_letters import write_letters
from ottla.broker.share.shared import Shared
from ottla.broker.share.states import states_of
from ottla.core.errors import ApiError, InvalidRequest
from ottla.share.partition import Acknowledgement, Acquired
from ottla.share.settings import reset_age_ms
from ottla.share.spans import State
from ottla.storage.segment_files.timestamps import Effort, Unfinished

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.share.writing import Written
    from ottla.share.config import ShareConfig
    from ottla.share.formats import StateKey
    from ottla.share.partition import Change
    from ottla.share.settings import GroupSettings
    from ottla.wire.messages.share_acknowledge import AcknowledgementBatch as OfAcknowledge
    from ottla.wire.messages.share_fetch import AcknowledgementBatch as OfFetch

    Acknowledgements = Sequence[OfAcknowledge | OfFetch]

_logger: Final = logging.getLogger(__name__)

_LONGEST_SLEEP_S: Final = 3600.0
_BATCHES_LOOKED_INTO: Final = 8
_TRY_AGAIN_S: Final = 1.0


class SharePartitions:
    def __init__(self, broker: Broker, config: ShareConfig, settings: Callable[[str], GroupSettings]) -> None:
        self.states = states_of(broker, config, self._first_offset, self._drop)
        self._broker = broker
        self._settings = settings
        self._shared: dict[StateKey, Shared] = {}
        self._wake_ups: list[tuple[int, int, Shared]] = []
        self._pushes = 0
        self._timer: asyncio.TimerHandle | None = None

    def now_ms(self) -> int:
        return self._broker.steady_clock.now_ms()

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        burials = [shared.burial for shared in self._shared.values() if shared.burial is not None]
        for task in burials:
            task.cancel()
        await asyncio.gather(*burials, return_exceptions=True)
        for shared in self._shared.values():
            shared.waits.give_up()
        await self.states.stop()

    # Finding

    def find(self, key: StateKey, partition: Partition) -> Shared | None:
        """The share partition; None if the group has no state of it."""
        shared = self._shared.get(key)
        if shared is None and (rules := self.states.rules_of(key)) is not None:
            shared = self._shared[key] = Shared(key, rules, partition)
        return shared

    def of_group(self, group_id: str) -> list[Shared]:
        """The share partitions in use."""
        return [shared for key, shared in self._shared.items() if key.group_id == group_id]

    def _first_offset(self, group_id: str, partition: Partition) -> int:
        reset = self._settings(group_id).offset_reset
        if reset == "earliest":
            return partition.log.start_offset
        age_ms = reset_age_ms(reset)
        if age_ms is not None:
            since_ms = self._broker.clock.now_ms() - age_ms
            found = partition.log.search_timestamp(since_ms, 0, Effort(_BATCHES_LOOKED_INTO, AT_ONCE_BYTES))
            if found is not None:
                # A search that takes too long ends early; some older records are then included.
                return found.next_offset if isinstance(found, Unfinished) else found.offset
        return partition.high_watermark

    def _drop(self, key: StateKey) -> None:
        shared = self._shared.pop(key, None)
        if shared is not None:
            if shared.burial is not None:
                shared.burial.cancel()
            shared.wake()

    # Acknowledgements

    def acknowledge(self, shared: Shared, member: str, batches: Acknowledgements) -> Written | None:
        """Apply all acknowledgements, or none and raise an ApiError. `settled` waits until they are durable."""
        settings = self._settings(shared.key.group_id)
        changes: list[Change] = []
        renewed: list[Acquired] = []
        last = -1
        shared.follow_the_log()
        for batch in batches:
            if batch.first_offset <= last:
                raise InvalidRequest("acknowledged offsets must be in ascending order")
            last = batch.last_offset
            if not settings.renews and Acknowledgement.RENEW in batch.acknowledge_types:
                raise InvalidRequest("this group does not allow acquisition locks to be renewed")
            more, again = shared.rules.acknowledge(
                member, batch.first_offset, last, batch.acknowledge_types, settings.limits
            )
            changes += more
            renewed += again
        place = self._commit(shared, changes)
        shared.rules.renew(renewed, settings.limits, self.now_ms())
        self.arm(shared)
        return place

    async def settled(self, shared: Shared, place: Written | None) -> None:
        """Wait until acknowledgements, and dead letters caused by them, are durable; raises ApiError if not."""
        if place is not None:
            await place.safe()
        if shared.burial is not None:
            await asyncio.shield(shared.burial)

    def release(self, shared: Shared, member: str, *, was_delivered: bool) -> None:
        """Release the records that this member has acquired."""
        limits = self._settings(shared.key.group_id).limits
        self._commit_if_possible(shared, shared.rules.release(member, limits, was_delivered=was_delivered))

    def _commit(self, shared: Shared, changes: Sequence[Change]) -> Written | None:
        """Write changes, then apply them: a crash in between has no effect."""
        place = None
        lasting = [change for change in changes if change.is_lasting]
        if lasting:
            place = self.states.change(shared.key, shared.rules.start_after(changes), lasting)
        self._apply(shared, changes)
        if lasting:
            try:
                self.states.changed(shared.key)
            except ApiError as refused:
                _logger.error("%s: could not write a snapshot: %s", shared.partition.at, refused)
        return place

    def _commit_if_possible(self, shared: Shared, changes: Sequence[Change]) -> None:
        """Commit changes that cannot be rejected. If writing fails and the broker then crashes, they are repeated."""
        try:
            self._commit(shared, changes)
        except ApiError as refused:
            _logger.error(
                "%s: could not write the state of group %s: %s", shared.partition.at, shared.key.group_id, refused
            )
            self._apply(shared, changes)

    def _apply(self, shared: Shared, changes: Sequence[Change]) -> None:
        shared.rules.apply(changes)
        dying = [change for change in changes if change.state is State.DYING]
        if dying:
            shared.dying += dying
            self._begin_burial(shared)
        shared.wake()

    # Dead letters

    def _begin_burial(self, shared: Shared) -> None:
        if shared.burial is None:
            shared.burial = asyncio.get_running_loop().create_task(self._bury(shared))
            shared.burial.add_done_callback(lambda done: self._buried(shared, done))

    async def _bury(self, shared: Shared) -> None:
        while shared.dying:
            dying = list(shared.dying)
            topic = self._settings(shared.key.group_id).dead_letter_topic
            if topic:
                await write_letters(self._broker, shared, topic, dying)
            letters = [Acquired(change.first, change.last, change.deliveries) for change in dying]
            place = self._commit(shared, shared.rules.buried(letters))
            del shared.dying[: len(dying)]
            if place is not None:
                await place.safe()

    def _buried(self, shared: Shared, task: asyncio.Task[None]) -> None:
        shared.burial = None
        if task.cancelled() or (error := task.exception()) is None:
            return
        _logger.error("%s: could not write dead letters, retrying: %s", shared.partition.at, error)
        asyncio.get_running_loop().call_later(_TRY_AGAIN_S, self._bury_again, shared)

    def _bury_again(self, shared: Shared) -> None:
        if self._shared.get(shared.key) is shared and shared.dying:
            self._begin_burial(shared)

    # Time

    def arm(self, shared: Shared) -> None:
        """Update the next deadline of a share partition after a change."""
        deadline_ms = shared.rules.next_deadline_ms()
        if deadline_ms is None or (shared.wakes_at_ms is not None and shared.wakes_at_ms <= deadline_ms):
            return
        shared.wakes_at_ms = deadline_ms
        self._pushes += 1
        heappush(self._wake_ups, (deadline_ms, self._pushes, shared))
        if self._wake_ups[0][2] is shared:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._wake_ups:
            delay_s = max(self._wake_ups[0][0] - self.now_ms(), 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(min(delay_s, _LONGEST_SLEEP_S), self.expire)

    def expire(self) -> None:
        now_ms = self.now_ms()
        while self._wake_ups and self._wake_ups[0][0] <= now_ms:
            at_ms, _, shared = heappop(self._wake_ups)
            if shared.wakes_at_ms == at_ms and self._shared.get(shared.key) is shared:
                shared.wakes_at_ms = None
                self._expire(shared, now_ms)
                self.arm(shared)
        self._set_timer()

    def _expire(self, shared: Shared, now_ms: int) -> None:
        late, is_due = shared.rules.expire(self._settings(shared.key.group_id).limits, now_ms)
        if late:
            self._commit_if_possible(shared, late)
        elif is_due:
            shared.wake()
