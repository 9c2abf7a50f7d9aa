"""Asking other nodes of the cluster what a client would ask, as the principal that nodes have among themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.asking import NodeAway
from ottla.client.config import ClientConfig
from ottla.client.errors import ClientError
from ottla.client.opening import Manner, open_connection

if TYPE_CHECKING:
    from ottla.broker.replication.replication import Replication
    from ottla.client.connection import Connection
    from ottla.wire.declare import Request

_SCRATCH_BYTES: Final = 256 << 10
_CONNECT_MS: Final = 3_000
_ANSWER_MS: Final = 60_000
_MOST_IDLE: Final = 4


class OtherNodes:
    """A connection for each request under way: one that waits for data holds up no other."""

    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self._idle: dict[int, list[Connection]] = {}
        config = ClientConfig(
            client_id=f"broker-{replication.node_id}",
            connect_timeout_ms=_CONNECT_MS,
            request_timeout_ms=_ANSWER_MS,
            security=replication.security,
        )
        self._manner = Manner(config, replication.tls, bytearray(_SCRATCH_BYTES))

    async def ask(self, node: int, request: Request, version: int | None = None) -> Any:  # noqa: ANN401 - as asked
        """NodeAway if no answer comes: it is not known then whether it was done."""
        try:
            connection = await self._connected(node)
            try:
                answer = await connection.ask(request, version=version)
            except BaseException:
                connection.close()
                raise
        except ClientError as failed:
            raise NodeAway(f"node {node} cannot be asked: {failed}") from failed
        self._keep(node, connection)
        return answer

    async def _connected(self, node: int) -> Connection:
        idle = self._idle.get(node, [])
        while idle:
            connection = idle.pop()
            if connection.is_open:
                return connection
        broker = self._replication.cluster.view.brokers.get(node)
        if broker is None:
            raise NodeAway(f"node {node} is not there")
        return await open_connection(broker.address, self._manner)

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
