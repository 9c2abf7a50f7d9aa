"""Connections to other brokers of the cluster, authenticated as the cluster's principal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.config import ClientConfig
from ottla.client.errors import ConnectFailed
from ottla.client.opening import ConnectionSettings, open_connection

if TYPE_CHECKING:
    from ottla.broker.replication.replication import Replication
    from ottla.client.connection import Connection


class NodeConnections:
    """Opens connections for one purpose; the caller closes them."""

    def __init__(
        self, replication: Replication, purpose: str, *, connect_ms: int, answer_ms: int, scratch_bytes: int
    ) -> None:
        self._replication = replication
        config = ClientConfig(
            client_id=f"broker-{replication.node_id}{purpose}",
            connect_timeout_ms=connect_ms,
            request_timeout_ms=answer_ms,
            security=replication.security,
        )
        self._settings = ConnectionSettings(config, replication.tls, bytearray(scratch_bytes))

    async def open(self, node: int) -> Connection:
        """Raises ClientError if the node is unreachable."""
        broker = self._replication.cluster.view.brokers.get(node)
        if broker is None:
            raise ConnectFailed(f"broker {node} is not registered")
        return await open_connection(broker.address, self._settings)
