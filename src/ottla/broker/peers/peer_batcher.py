"""Batched requests to other brokers, over the Kafka protocol and as the cluster's principal.

One request at a time per broker: items that arrive meanwhile are sent together in the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ottla.broker.peers.connections import NodeConnections
from ottla.client.connection import Connection
from ottla.client.errors import ClientError
from ottla.core.errors import ApiError, ErrorCode, ProtocolError

if TYPE_CHECKING:
    from ottla.broker.replication.replication import Replication
    from ottla.cluster.state import ViewChange

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Exchange = Callable[[Connection, Sequence[ItemT]], Awaitable[Sequence[ResultT]]]
"""Sends all of these items; returns a result for each, in order."""

_SCRATCH_BYTES: Final = 16 << 10
_PATIENCE_MS: Final = 10_000
_MOST_AT_ONCE: Final = 500


class NodeUnreachable(ApiError):
    """No response: the request may have been processed or not."""

    code = ErrorCode.NETWORK_EXCEPTION


class PeerBatcher(Generic[ItemT, ResultT]):
    def __init__(self, replication: Replication, purpose: str, exchange: Exchange[ItemT, ResultT]) -> None:
        self._replication = replication
        self._purpose = purpose
        self._exchange = exchange
        self._by_node: dict[int, _PeerQueue[ItemT, ResultT]] = {}
        replication.cluster.listen(self._changed)

    def ask(self, node: int, item: ItemT) -> asyncio.Future[ResultT]:
        """Raises NodeUnreachable if there is no response."""
        queue = self._by_node.get(node)
        if queue is None:
            queue = self._by_node[node] = _PeerQueue(self._replication, node, self._purpose, self._exchange)
        return queue.ask(item)

    async def close(self) -> None:
        queues = list(self._by_node.values())
        self._by_node.clear()
        await asyncio.gather(*(queue.close() for queue in queues))

    def _changed(self, change: ViewChange) -> None:
        for node in [each for each in self._by_node if each not in change.after.brokers]:
            # The node may not respond for long, while others take over its partitions.
            self._by_node[node].hang_up()


class _PeerQueue(Generic[ItemT, ResultT]):
    def __init__(self, replication: Replication, node: int, purpose: str, exchange: Exchange[ItemT, ResultT]) -> None:
        self._node = node
        self._exchange = exchange
        self._connections = NodeConnections(
            replication,
            f"-{purpose}-{node}",
            connect_ms=_PATIENCE_MS,
            answer_ms=_PATIENCE_MS,
            scratch_bytes=_SCRATCH_BYTES,
        )
        self._waiting: list[tuple[ItemT, asyncio.Future[ResultT]]] = []
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    def ask(self, item: ItemT) -> asyncio.Future[ResultT]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[ResultT] = loop.create_future()
        self._waiting.append((item, answer))
        if self._task is None:
            self._task = loop.create_task(self._run())
        return answer

    def hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.hang_up()

    async def _run(self) -> None:
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
                await self._ask_all(taken)
        finally:
            self._task = None

    async def _ask_all(self, taken: list[tuple[ItemT, asyncio.Future[ResultT]]]) -> None:
        try:
            results = await self._answers_to([item for item, _ in taken])
        except (ClientError, ProtocolError) as failed:
            self.hang_up()
            for _, answer in taken:
                if not answer.done():
                    answer.set_exception(NodeUnreachable(f"broker {self._node} does not respond: {failed}"))
            return
        for (_, answer), result in zip(taken, results, strict=True):
            if not answer.done():  # the caller may have been cancelled
                answer.set_result(result)

    async def _answers_to(self, items: Sequence[ItemT]) -> Sequence[ResultT]:
        results = await self._exchange(await self._connected(), items)
        if len(results) != len(items):
            raise ProtocolError(f"broker {self._node} returned {len(results)} results for {len(items)} items")
        return results

    async def _connected(self) -> Connection:
        if self._connection is None or not self._connection.is_open:
            self._connection = await self._connections.open(self._node)
        return self._connection
