"""Clients that push to and pop from the shards of a topic over DMQP, and what they must not see."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError
from ottla.dmqp.frame import Frame, FrameParser, Method, Status, encode

from .work import Job

if TYPE_CHECKING:
    from .cluster import World

_ANSWER_WITHIN_S: Final = 4.0
_SHARDS: Final = 2


class QueueLedger:
    """What was pushed, and what was popped."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.acknowledged: dict[str, tuple[int, int]] = {}
        """By message: its shard and its sequence id."""
        self.sent: set[str] = set()
        self.popped: dict[str, int] = {}
        self.unclear: Counter[int] = Counter()
        """By shard: pops without a reply. Each may have removed a message."""
        self.problems: list[str] = []
        self._last: dict[tuple[str, int], int] = {}

    def pops(self, consumer: str, shard: int, reply: Frame) -> None:
        message = reply.payload.decode()
        if message not in self.sent:
            self.problems.append(f"popped what was never pushed: {message}")
        if message in self.popped:
            self.problems.append(f"popped twice: {message}, sequence id {reply.sequence_id}")
        if reply.sequence_id in self.popped.values():
            self.problems.append(f"sequence id {reply.sequence_id} is used twice, of {message}")
        if reply.sequence_id <= self._last.get((consumer, shard), -1):
            self.problems.append(f"popped out of order: {message}, sequence id {reply.sequence_id}")
        self.popped[message] = self._last[consumer, shard] = reply.sequence_id

    def missing(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {shard: [] for shard in range(_SHARDS)}
        for message, (shard, _) in self.acknowledged.items():
            if message not in self.popped:
                found[shard].append(message)
        return found

    def violations(self) -> list[str]:
        found = list(self.problems)
        for message, (_, sequence) in self.acknowledged.items():
            if self.popped.get(message, sequence) != sequence:
                found.append(f"{message} was pushed as {sequence} and popped as {self.popped[message]}")
        ids = Counter(sequence for _, sequence in self.acknowledged.values())
        found += [f"sequence id {sequence} was given to {count} pushes" for sequence, count in ids.items() if count > 1]
        for shard, messages in self.missing().items():
            if len(messages) > self.unclear[shard]:
                found.append(
                    f"lost: {messages} of shard {shard} were never popped, and {self.unclear[shard]} pops had no reply"
                )
        return found


class NoReplyError(Exception):
    """The outcome is unknown."""


class ShardLink(asyncio.Protocol):
    """A connection to one shard, with one request at a time."""

    def __init__(self) -> None:
        self._frames = FrameParser()
        self._waiting: deque[asyncio.Future[Frame]] = deque()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(frame)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - lost is lost
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(NoReplyError())
        self._waiting.clear()
        self._transport = None

    async def ask(self, method: Method, payload: bytes = b"") -> Frame:
        transport = self._transport
        if transport is None or transport.is_closing():
            raise NoReplyError
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        transport.write(encode(0, method, 0, payload))
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                return await waiting
        except TimeoutError:
            transport.abort()
            raise NoReplyError from None


class QueueJob(Job):
    def __init__(self, world: World, name: str, host: str, ledger: QueueLedger) -> None:
        super().__init__(world, name, host)
        self.ledger = ledger
        self._links: dict[int, ShardLink] = {}

    async def _run(self) -> None:
        while not self.is_ending:
            shard = await self.turn()
            if shard is not None:
                self._links.pop(shard, None)
                await asyncio.sleep(0.1)

    async def turn(self) -> int | None:
        """The shard whose connection is of no use any more."""
        raise NotImplementedError

    async def link(self, shard: int) -> ShardLink | None:
        """To where any node says that the shard is served: the REST API is not simulated."""
        if shard in self._links:
            return self._links[shard]
        world = self.world
        running = [node for node in world.running if node.queues is not None]
        if not running:
            return None
        queues = world.chance.choice(running).queues
        assert queues is not None
        try:
            address = queues.find(self.ledger.topic).shards[shard]
            async with asyncio.timeout(2):
                _, link = await world.loop.create_connection(ShardLink, address.host, address.port)
        except (ApiError, IndexError, OSError, TimeoutError):
            return None
        self._links[shard] = link
        return self._links[shard]


class Pusher(QueueJob):
    """Each message has a number, and is pushed once."""

    _count = 0

    async def turn(self) -> int | None:
        await asyncio.sleep(0.08)
        shard = self._count % _SHARDS
        link = await self.link(shard)
        if link is None:
            return shard
        message = f"{self.name}:{self._count}"
        self._count += 1
        self.ledger.sent.add(message)
        try:
            reply = await link.ask(Method.PUSH, message.encode())
        except NoReplyError:
            return shard
        if reply.status == Status.OK:
            self.ledger.acknowledged[message] = shard, reply.sequence_id
            self.world.loop.note("pushed", message, reply.sequence_id)
        return None


class Popper(QueueJob):
    """Pops from all shards in turn."""

    _next = 0

    async def turn(self) -> int | None:
        shard = self._next = (self._next + 1) % _SHARDS
        link = await self.link(shard)
        if link is None:
            return shard
        try:
            reply = await link.ask(Method.POP)
        except NoReplyError:
            self.ledger.unclear[shard] += 1
            return shard
        if reply.status == Status.OK:
            self.ledger.pops(self.name, shard, reply)
            self.world.loop.note("popped", reply.payload, reply.sequence_id)
        else:
            await asyncio.sleep(0.1)
        return None


async def expose(world: World, topic: str) -> None:
    [node, *_] = world.running
    queues = node.queues
    assert queues is not None
    assert node.broker is not None
    while topic not in node.broker.topics.by_name:  # noqa: ASYNC110 - soon
        await asyncio.sleep(0.01)
    await world.loop.create_task(queues.expose(topic, ()), context=node.party.context)


async def drain(ledger: QueueLedger, for_s: float) -> None:
    """Until everything was popped, as far as it can be."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + for_s
    quiet_s, popped = loop.time(), len(ledger.popped)
    while loop.time() < until_s and any(ledger.missing().values()):
        await asyncio.sleep(0.2)
        if popped != len(ledger.popped):
            quiet_s, popped = loop.time(), len(ledger.popped)
        elif loop.time() - quiet_s > 10:
            return
