"""Client requests to other nodes of the cluster, sent as the cluster's principal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.in_process_requests import NodeAway, ResponseT
from ottla.broker.peers.connections import NodeConnections
from ottla.client.errors import ClientError

if TYPE_CHECKING:
    from ottla.broker.replication.replication import Replication
    from ottla.client.connection import Connection
    from ottla.wire.codec import RequestFor

_SCRATCH_BYTES: Final = 256 << 10
_CONNECT_MS: Final = 3_000
_ANSWER_MS: Final = 60_000
_MOST_IDLE: Final = 4


class OtherNodes:
    """One connection per pending request: a waiting fetch must not block others."""

    def __init__(self, replication: Replication) -> None:
        self._idle: dict[int, list[Connection]] = {}
        self._connections = NodeConnections(
            replication, "", connect_ms=_CONNECT_MS, answer_ms=_ANSWER_MS, scratch_bytes=_SCRATCH_BYTES
        )

    async def ask(self, node: int, request: RequestFor[ResponseT], version: int | None = None) -> ResponseT:
        """Send a request. Raises NodeAway if there is no response: the outcome is unknown then."""
        try:
            connection = await self._connected(node)
            try:
                answer = await connection.ask(request, version=version)
            except BaseException:
                connection.close()
                raise
        except ClientError as failed:
            raise NodeAway(f"node {node} is unreachable: {failed}") from failed
        self._keep(node, connection)
        return answer

    async def _connected(self, node: int) -> Connection:
        idle = self._idle.get(node, [])
        while idle:
            connection = idle.pop()
            if connection.is_open:
                return connection
        return await self._connections.open(node)

    def _keep(self, node: int, connection: Connection) -> None:
        idle = self._idle.setdefault(node, [])
        if connection.is_open and len(idle) < _MOST_IDLE:
            idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()
