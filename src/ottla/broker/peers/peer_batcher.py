"""Questions of one broker to others, by the Kafka protocol and as the cluster's own principal.

One request after the other to each: what comes up while one is under way goes into the next, all of it together.
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
"""Ask all of these at once; a result for each, in order."""

_SCRATCH_BYTES: Final = 16 << 10
_PATIENCE_MS: Final = 10_000
_MOST_AT_ONCE: Final = 500


class NodeUnreachable(ApiError):
    """No answer came: what was asked may have happened or not."""

    code = ErrorCode.NETWORK_EXCEPTION


class NodeLines(Generic[ItemT, ResultT]):
    def __init__(self, replication: Replication, purpose: str, exchange: Exchange[ItemT, ResultT]) -> None:
        self._replication = replication
        self._purpose = purpose
        self._exchange = exchange
        self._lines: dict[int, _Line[ItemT, ResultT]] = {}
        replication.cluster.listen(self._changed)

    def ask(self, node: int, item: ItemT) -> asyncio.Future[ResultT]:
        """NodeUnreachable if no answer comes."""
        line = self._lines.get(node)
        if line is None:
            line = self._lines[node] = _Line(self._replication, node, self._purpose, self._exchange)
        return line.ask(item)

    async def close(self) -> None:
        lines = list(self._lines.values())
        self._lines.clear()
        await asyncio.gather(*(line.close() for line in lines))

    def _changed(self, change: ViewChange) -> None:
        for node in [each for each in self._lines if each not in change.after.brokers]:
            # It may be silent for long yet, and others lead what it led.
            self._lines[node].hang_up()


class _Line(Generic[ItemT, ResultT]):
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
                    answer.set_exception(NodeUnreachable(f"broker {self._node} does not answer: {failed}"))
            return
        for (_, answer), result in zip(taken, results, strict=True):
            if not answer.done():  # whoever asked may have gone
                answer.set_result(result)

    async def _answers_to(self, items: Sequence[ItemT]) -> Sequence[ResultT]:
        results = await self._exchange(await self._connected(), items)
        if len(results) != len(items):
            raise ProtocolError(f"broker {self._node} gave {len(results)} answers to {len(items)} questions")
        return results

    async def _connected(self) -> Connection:
        if self._connection is None or not self._connection.is_open:
            self._connection = await self._connections.open(self._node)
        return self._connection
