"""The group leader: assigns partitions, and watches for changes that require a rebalance."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerUnavailable
from ottla.client.group.selection import layout, wanted_by
from ottla.client.group.state import members_of

if TYPE_CHECKING:
    from ottla.client.group.assignors.subjects import Assignor, Layout, Shares
    from ottla.client.router import Router
    from ottla.client.view import ClusterView
    from ottla.wire.messages.join_group import JoinGroupResponse

_log: Final = logging.getLogger(__name__)


class Leadership:
    def __init__(self, router: Router, response: JoinGroupResponse) -> None:
        self._router = router
        self._members = members_of(response)
        self._topics = wanted_by(self._members)
        self._minds_racks = any(member.rack for member in self._members)
        self._shared_out = self._shape(router.view)

    async def share_out(self, assignor: Assignor) -> Shares:
        await self.look()
        return assignor.assign(self._members, layout(self._router.view, self._topics))

    async def look(self) -> None:
        """Refresh the metadata: other members may subscribe to topics that this one does not know."""
        self._router.watch(self._topics)
        try:
            await self._router.refresh(self._topics)
        except BrokerUnavailable as failed:
            _log.warning("assigning partitions with possibly stale metadata: %s", failed)
        self._shared_out = self._shape(self._router.view)

    def is_outdated(self) -> bool:
        return self._shape(self._router.view) != self._shared_out

    def _shape(self, view: ClusterView) -> Layout | dict[str, int]:
        found = layout(view, self._topics)
        return found if self._minds_racks else {topic: len(partitions) for topic, partitions in found.items()}
