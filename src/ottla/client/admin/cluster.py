"""Description of the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.client.admin.requests import AdminRequests

if TYPE_CHECKING:
    from ottla.client.view import BrokerAddress


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    cluster_id: str | None
    controller_id: int
    """The controller's broker id; -1 if there is none."""
    brokers: tuple[BrokerAddress, ...]


class ClusterAdmin(AdminRequests):
    async def describe_cluster(self) -> ClusterDescription:
        """The cluster id and the live brokers."""
        await self._router.refresh(())
        view = self._router.view
        brokers = tuple(view.brokers[node_id] for node_id in sorted(view.brokers))
        return ClusterDescription(view.cluster_id, view.controller_id, brokers)
