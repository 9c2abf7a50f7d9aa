"""Pending ISR changes in the cluster's catalog."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.cluster.state import InvalidUpdateVersion
from ottla.core.errors import ApiError, NotLeaderOrFollower

if TYPE_CHECKING:
    from ottla.broker.replication.replica import Replica
    from ottla.cluster.replication.leading import Leading
    from ottla.cluster.state import Cluster

_logger: Final = logging.getLogger(__name__)

_AGAIN_S: Final = 0.5


class IsrChanges:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._tasks: set[asyncio.Task[None]] = set()

    def propose(self, replica: Replica, isr: frozenset[int]) -> None:
        leading = replica.leading
        if leading is None or leading.proposed is not None:
            return
        _logger.info("%s: changing the ISR from %s to %s", replica.partition.at, sorted(leading.isr), sorted(isr))
        leading.propose(isr)
        task = asyncio.get_running_loop().create_task(self._change(replica, leading))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _change(self, replica: Replica, leading: Leading) -> None:
        """Retry until the change was applied, or the view shows that it will not be."""
        version, isr, lost = leading.version, leading.epochs_of(leading.proposed or ()), leading.lost
        while replica.leading is leading and leading.version == version:
            try:
                state = await self._cluster.change_isr(replica.key, isr, leading.leader_epoch, version, lost)
            except (InvalidUpdateVersion, NotLeaderOrFollower):
                # The new ISR arrives with the view; until then the members of both ISRs count.
                await asyncio.sleep(_AGAIN_S)
            except ApiError as refused:
                _logger.warning("%s: could not change the ISR: %s", replica.partition.at, refused)
                await asyncio.sleep(_AGAIN_S)
            else:
                led = replica.led
                if led is not None and led.leading is leading and state.leader_epoch == leading.leader_epoch:
                    leading.changed(state)
                    led.advance()

    async def stop(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
