"""A member of a consumer group: joins, takes and revokes partitions, rejoins, leaves.

Three tasks: this one, which follows the group's generations; heartbeats; automatic commits.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerUnavailable, ClientError
from ottla.client.group.assignors.known import assignors_named
from ottla.client.group.commits import Commits
from ottla.client.group.heartbeat_schedule import Due
from ottla.client.group.heartbeats import Heartbeats
from ottla.client.group.interface import Committed, Holder, RebalanceListener
from ottla.client.group.leading import Leadership
from ottla.client.group.link import CoordinatorLink
from ottla.client.group.offsets import GroupOffsets
from ottla.client.group.state import Change, MemberState, Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from ottla.client.config import ConsumerConfig
    from ottla.client.group.selection import Selection
    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition
    from ottla.wire.messages.join_group import JoinGroupResponse

_log: Final = logging.getLogger(__name__)

_LONGER_THAN_A_REBALANCE_S: Final = 5.0


class GroupMember:
    def __init__(
        self,
        router: Router,
        config: ConsumerConfig,
        selection: Selection,
        holder: Holder,
        listener: RebalanceListener | None = None,
    ) -> None:
        self._router = router
        self._selection = selection
        self._holder = holder
        self._listener = listener or RebalanceListener()
        self._state = MemberState(config, assignors_named(config.assignors))
        self._link = CoordinatorLink(router, self._state.group)
        self._offsets = GroupOffsets(router, self._state.group)
        self._joined = asyncio.Event()
        self._commits = Commits(self._offsets, self._state, config, holder.positions, self._joined)
        self._beats = Heartbeats(self._link, self._state, config, self._rejoin)
        self._join_timeout_s = config.max_poll_interval_ms / 1000 + _LONGER_THAN_A_REBALANCE_S
        self._topics: frozenset[str] = frozenset()
        self._has_looked = False
        """Whether all topics were loaded once; from then on the router keeps them fresh."""
        self._leadership: Leadership | None = None
        self._reason: str | None = "the consumer has started"
        """Why to rejoin; None if there is no reason."""
        self._gone = asyncio.Event()
        """Cleared while partitions that the application may be processing must be revoked."""
        self._gone.set()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_listening: Callable[[], None] = lambda: None

    # Called by the consumer

    @property
    def generation(self) -> int:
        return self._state.generation

    @property
    def member_id(self) -> str:
        return self._state.member_id

    async def start(self) -> None:
        """Start joining; partitions arrive through the Holder."""
        self._router.watch(self._selection.named)
        self._stop_listening = self._router.subscribe_to_changes(self._look_at_view)
        steps = [self._follow(), self._beats.run()]
        if self._commits.is_automatic:
            steps.append(self._commits.keep_committing())
        self._tasks = [asyncio.create_task(self._guard(step)) for step in steps]

    async def close(self) -> None:
        """Commit, with auto_commit, release all partitions, and leave unless this is a static member."""
        self._stop_listening()
        must_commit = self._state.owned and self._commits.is_automatic and self._is_following
        # Without a known generation nothing can be committed.
        if must_commit and not await self._commits.until_joined():
            self._state.lose(forgets_id=False)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._beats.poll_begins()
        try:
            await self._give_up(self._state.owned)
        finally:
            await self._leave()
            await self._link.close()

    def subscribe(self, selection: Selection) -> None:
        """Change the subscription."""
        self._selection = selection
        self._has_looked = False
        self._router.watch(selection.named)
        self._rejoin("the subscription has changed")

    async def poll_begins(self) -> None:
        """Handle the start of a poll: all delivered messages are processed, and pending revocations happen now."""
        self._beats.poll_begins()
        self._changed.set()
        await self._gone.wait()

    def poll_ends(self, *, is_busy: bool) -> None:
        self._beats.poll_ends(is_busy=is_busy)

    async def commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Raises CommitFailed if the member was removed from the group."""
        await self._commits.commit(offsets)

    async def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        """The committed offsets; partitions without one are omitted."""
        return await self._offsets.fetch(partitions)

    # Following the group

    @property
    def _is_following(self) -> bool:
        return bool(self._tasks) and not self._tasks[0].done()

    async def _guard(self, step: Awaitable[None]) -> None:
        try:
            await step
        except ClientError as failed:
            self._fail(failed)
        except Exception as bug:  # noqa: BLE001  # otherwise poll would wait forever
            _log.exception("membership in group %r failed", self._state.group)
            self._fail(ClientError(f"membership in group {self._state.group!r} failed: {bug!r}"))

    def _fail(self, error: ClientError) -> None:
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._holder.fail(error)

    async def _follow(self) -> None:
        failures = 0
        while True:
            await self._until(lambda: self._reason is not None)
            if self._state.is_lost:
                await self._give_up(self._state.owned)
            await self._until(lambda: not self._is_away())
            await self._give_up(self._state.to_give_up(self._selection.wants))
            outcome = await self._join()
            if isinstance(outcome, Change):
                failures = 0
                await self._apply(outcome)
                continue
            if outcome is Outcome.ELSEWHERE:
                self._link.forget()
            if outcome in (Outcome.ELSEWHERE, Outcome.LATER):
                failures += 1
                await asyncio.sleep(self._router.backoff.delay_s(failures))

    async def _join(self) -> Outcome | Change:
        """Make one attempt to join; only a Change means that this member is in the next generation."""
        if not await self._choose_topics():
            return Outcome.LATER
        self._beats.pause()
        self._joined.clear()
        reason, self._reason, self._leadership = self._reason, None, None
        outcome: Outcome | Change = Outcome.LATER
        try:
            response = await self._link.ask(self._state.join_request(self._topics, reason), self._join_timeout_s)
            outcome = self._state.joined(response)
            if outcome is Outcome.GO_ON:
                outcome = await self._sync(response)
        except BrokerUnavailable as failed:
            _log.warning("group %r: %s", self._state.group, failed)
        if isinstance(outcome, Change) or self._state.is_lost:
            self._joined.set()
        if not isinstance(outcome, Change):
            self._rejoin(reason or "the group is rebalancing")
        return outcome

    async def _sync(self, response: JoinGroupResponse) -> Outcome | Change:
        shares = {}
        if self._state.is_leader:
            self._leadership = Leadership(self._router, response)
            if response.skip_assignment:
                await self._leadership.look()
            else:
                shares = await self._leadership.share_out(self._state.assignor)
        answer = await self._link.ask(self._state.sync_request(shares), self._join_timeout_s)
        return self._state.synced(answer, self._selection.wants)

    async def _choose_topics(self) -> bool:
        if self._selection.named is None and not self._has_looked:
            try:
                await self._router.refresh(None)
            except BrokerUnavailable as failed:
                _log.warning("group %r: %s", self._state.group, failed)
                return False
            self._has_looked = True
        self._topics = self._selection.topics(self._router.view)
        return True

    async def _apply(self, change: Change) -> None:
        self._beats.resume()
        if change.is_wrong:
            self._rejoin("the assignment has topics that are no longer subscribed")
            return
        if change.revoked:
            await self._give_up(change.revoked)
            self._rejoin("partitions were revoked")
        if change.added and not self._state.is_lost:
            self._state.took(change.added)
            self._holder.add(change.added)
            await _tell(self._listener.on_assigned, change.added)
            self._holder.deliver(change.added)
        self._look_at_view()

    async def _give_up(self, partitions: frozenset[TopicPartition]) -> None:
        if not partitions:
            return
        self._gone.clear()
        try:
            await self._until(lambda: not self._beats.schedule.is_busy or self._state.is_lost)
            self._holder.hold_back(partitions)
        finally:
            self._gone.set()
        if self._state.is_lost:
            await _tell(self._listener.on_lost or self._listener.on_revoked, partitions)
        else:
            await self._commits.commit_positions(partitions)
            await _tell(self._listener.on_revoked, partitions)
        self._holder.remove(partitions)
        self._state.gave_up(partitions)

    async def _leave(self) -> None:
        if self._state.is_static or not self._state.member_id:
            return
        self._link.hang_up()  # a join may be pending
        try:
            await self._link.ask(self._state.leave_request("the consumer is closed"))
        except ClientError as failed:
            _log.info("could not leave group %r: %s", self._state.group, failed)

    # Concurrent events

    def _rejoin(self, reason: str) -> None:
        self._reason = reason
        self._changed.set()

    def _look_at_view(self) -> None:
        if self._leadership is not None and self._leadership.is_outdated():
            self._rejoin("topics or partitions have changed")
        elif self._selection.topics(self._router.view) != self._topics:
            self._rejoin("other topics match the subscription")

    def _is_away(self) -> bool:
        return self._beats.schedule.due(asyncio.get_running_loop().time()) is Due.POLL_OVERDUE

    async def _until(self, claim: Callable[[], bool]) -> None:
        while not claim():
            self._changed.clear()
            await self._changed.wait()


async def _tell(
    listener: Callable[[frozenset[TopicPartition]], Awaitable[None] | None] | None,
    partitions: frozenset[TopicPartition],
) -> None:
    if listener is None:
        return
    try:
        answer = listener(partitions)
        if inspect.isawaitable(answer):
            await answer
    except Exception as failed:
        raise ClientError(f"the rebalance listener failed: {failed!r}") from failed
