"""Sends heartbeats while the member waits for the application or for other members."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerUnavailable
from ottla.client.group.heartbeat_schedule import Due, HeartbeatSchedule
from ottla.client.group.state import MemberState, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.config import ConsumerConfig
    from ottla.client.group.link import CoordinatorLink

_log: Final = logging.getLogger(__name__)


class Heartbeats:
    def __init__(
        self, link: CoordinatorLink, state: MemberState, config: ConsumerConfig, on_rebalance: Callable[[str], None]
    ) -> None:
        self.schedule = HeartbeatSchedule(config, asyncio.get_running_loop().time())
        self._link = link
        self._state = state
        self._timeout_s = config.session_timeout_ms / 1000
        self._on_rebalance = on_rebalance
        self._changed = asyncio.Event()
        self._is_joining = True

    def pause(self) -> None:
        """Pause while the member joins: it counts as alive then, and its connection is in use."""
        self._is_joining = True

    def resume(self) -> None:
        self._is_joining = False
        self.schedule.beat(asyncio.get_running_loop().time())
        self._changed.set()

    def poll_begins(self) -> None:
        self.schedule.poll_begins()

    def poll_ends(self, *, is_busy: bool) -> None:
        self.schedule.poll_ends(asyncio.get_running_loop().time(), is_busy=is_busy)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = self.schedule.due(loop.time())
            if self._is_joining or self._state.is_lost:
                await self._wait(None)
            elif due is Due.POLL_OVERDUE:
                await self._drop_out()
            elif due is Due.HEARTBEAT:
                self.schedule.beat(loop.time())
                await self._beat()
            else:
                await self._wait(self.schedule.next_at())

    async def _wait(self, until: float | None) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout_at(until):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _beat(self) -> None:
        generation = self._state.generation
        try:
            response = await self._link.ask(self._state.heartbeat_request(), self._timeout_s)
        except BrokerUnavailable as failed:
            _log.info("heartbeat to group %r failed: %s", self._state.group, failed)
            return
        if self._is_joining or self._state.generation != generation:
            return  # of an earlier generation
        outcome = self._state.heartbeat_answered(response.error_code)
        if outcome is Outcome.ELSEWHERE:
            self._link.forget()
        elif outcome is Outcome.AGAIN:
            self._on_rebalance("the group is rebalancing")
        elif outcome is Outcome.LOST:
            self._on_rebalance("the member was removed from the group")

    async def _drop_out(self) -> None:
        """Leave the group: the application hangs or is slow, and other members should take over (KIP-62)."""
        state = self._state
        _log.warning(
            "leaving group %r: the application has not polled for max_poll_interval_ms; "
            "poll fewer messages at once, or raise max_poll_interval_ms",
            state.group,
        )
        request = state.leave_request("the application has not polled for max_poll_interval_ms")
        is_known = not state.is_static  # a static member stays until its session expires
        state.lose(forgets_id=is_known)
        self._on_rebalance("the application did not poll")
        if is_known:
            try:
                await self._link.ask(request, self._timeout_s)
            except BrokerUnavailable as failed:
                _log.info("could not leave group %r: %s", state.group, failed)
