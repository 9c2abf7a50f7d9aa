"""The cluster itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.client.admin.asking import Asking

if TYPE_CHECKING:
    from ottla.client.view import BrokerAddress


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    cluster_id: str | None
    controller_id: int
    """The broker to send changes to; -1 if there is none now."""
    brokers: tuple[BrokerAddress, ...]


class ClusterAdmin(Asking):
    async def describe_cluster(self) -> ClusterDescription:
        """The cluster's id and its live brokers, as they are now."""
        await self._router.refresh(())
        view = self._router.view
        brokers = tuple(view.brokers[node_id] for node_id in sorted(view.brokers))
        return ClusterDescription(view.cluster_id, view.controller_id, brokers)
