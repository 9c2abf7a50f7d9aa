"""The DMQP server of a cluster node: exposures are shared, and served by one node at a time.

All shards of a topic are served by the leader of its first partition, since they share one counter. When the leader
changes, they are bound and published again, once the previous node has answered all received requests: until then it
holds a claim in ZooKeeper, which ends with its session. A node that has not noticed the end of its session is fenced
(see `fencing`). Pushes and pops of partitions led by other nodes are sent there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.core.errors import ApiError, ErrorCode, InvalidRequest, RequestTimedOut, UnknownTopicOrPartition
from ottla.core.security import ANONYMOUS
from ottla.dmqp.exposures import Exposure
from ottla.dmqp.fencing import PushFence
from ottla.dmqp.preparing import prepare
from ottla.dmqp.served_topic import ANY_HOST, ServedTopic
from ottla.dmqp.server import DmqpServer
from ottla.dmqp.shared import Shared, read_shared

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.interfaces.protocol_servers import Exposed
    from ottla.broker.topics import TopicState
    from ottla.dmqp.config import DmqpConfig

_logger: Final = logging.getLogger(__name__)

_AGAIN_S: Final = 0.5
_CLAIM_AGAIN_S: Final = 0.05
_CLAIM_TRIES: Final = 20
_PATIENCE_S: Final = 15.0


class ClusterDmqpServer(DmqpServer):
    def __init__(self, broker: Broker, config: DmqpConfig) -> None:
        super().__init__(broker, config)
        assert broker.cluster is not None  # noqa: S101 - this class is only used in a cluster
        self._cluster = broker.cluster
        self._shards = broker.cluster.exposed_shards
        self._serving_keys: dict[str, object] = {}
        self._claimed: set[str] = set()
        """Topics that no other node serves, as long as the session lasts."""
        self._unreleased: set[str] = set()
        """Topics of which ZooKeeper may hold a claim of this node, valid or not: fencing does not end the session."""
        self._told_consumers: dict[str, frozenset[str]] = {}
        self._changed = asyncio.Event()
        self._news = asyncio.Event()
        self._settling: asyncio.Task[None] | None = None
        self._telling: set[asyncio.Task[bool]] = set()

    # Starting and stopping

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._service.start()

        def post() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._learnt)

        self._shards.listen(post)
        self._cluster.listen(lambda _: self._changed.set())
        self._cluster.on_session_lost(self._lost_claims)
        self._changed.set()
        self._settling = loop.create_task(self._settle_periodically())

    def _learnt(self) -> None:
        self._changed.set()
        self._news.set()

    def _lost_claims(self) -> None:
        self._claimed.clear()
        self._changed.set()

    async def stop(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
        async with self._changing:
            for name in list(self._topics):
                await self._let_go(name)
            self._service.stop()

    # Called by REST

    def _known(self) -> dict[str, Shared]:
        return {name: read_shared(data) for name, data in self._shards.known().items()}

    def exposed(self) -> list[Exposed]:
        return [self.find(name) for name in sorted(self._known())]

    def find(self, topic: str) -> Exposed:
        if topic in self._topics:
            return super().find(topic)
        return self._shared(topic).described(topic)

    def elsewhere(self, topic: str) -> str | None:
        if topic in self._topics:
            return None
        shared = self._shared(topic)
        if not shared.http or shared.node not in self._cluster.view.brokers:
            raise RequestTimedOut(f"no node serves {topic} over DMQP at the moment; retry later")
        return shared.http

    def _shared(self, topic: str) -> Shared:
        known = self._shards.known().get(topic)
        if known is None:
            raise UnknownTopicOrPartition(f"topic {topic!r} is not exposed over DMQP")
        return read_shared(known)

    async def expose(self, topic: str, ports: Sequence[int], principal: str = ANONYMOUS) -> Exposed:
        state = self._broker.topics.by_name.get(topic)
        if state is None:
            raise UnknownTopicOrPartition(f"no topic {topic!r}")
        if len(ports) > len(state.partitions):
            raise InvalidRequest(f"topic {topic} has {len(state.partitions)} shards; give one port for each")
        await prepare(self._broker, state, principal)
        shared = Shared(topic_id=state.entry.id.text, ports=list(ports), principal=principal)
        await self._put(topic, shared)
        await self._until_served(topic, len(state.partitions))
        return self.find(topic)

    async def _until_served(self, topic: str, shards: int) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while len(self._shared(topic).endpoints) < shards:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise RequestTimedOut(f"{topic} is exposed, but no node serves it yet; retry later") from None

    async def unexpose(self, topic: str) -> None:
        shared = self._shared(topic)
        consumers = self._told_consumers.pop(topic, frozenset())
        await self._cluster.work(lambda: self._shards.remove(topic, shared.endpoints, consumers))

    def register(self, topic: str, consumer: str) -> tuple[int, ...]:
        shards = super().register(topic, consumer)
        self._tell_consumers(topic)
        return shards

    def unregister(self, topic: str, consumer: str) -> None:
        super().unregister(topic, consumer)
        self._tell_consumers(topic)

    def _tell_consumers(self, topic: str) -> None:
        now = frozenset(self.find(topic).consumers)
        before = self._told_consumers.get(topic, frozenset())
        if now != before:
            self._told_consumers[topic] = now
            work = self._cluster.work(lambda: self._shards.change_consumers(topic, before - now, now - before))
            task = asyncio.get_running_loop().create_task(self._tried(work, f"publish the DMQP consumers of {topic}"))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tried(self, work: Awaitable[None], what: str) -> bool:
        try:
            await work
        except ApiError as refused:
            _logger.warning("could not %s: %s", what, refused)
            return False
        return True

    def topic_deleted(self, topic: str) -> None:  # noqa: ARG002 - all that there is are looked at
        self._changed.set()

    # Serving this node's topics

    async def _settle_periodically(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            async with self._changing:
                try:
                    await self._settle()
                except (ApiError, OSError) as refused:
                    why = str(refused) or getattr(refused, "code", ErrorCode.UNKNOWN_SERVER_ERROR).name
                    _logger.warning("could not serve all topics exposed over DMQP yet: %s", why)
                    asyncio.get_running_loop().call_later(_AGAIN_S, self._changed.set)

    async def _settle(self) -> None:
        known = self._known()
        for name in [each for each in self._topics if each not in known]:
            await self._let_go(name)
        for name, shared in known.items():
            state = self._broker.topics.by_name.get(name)
            if state is not None and state.entry.id.text != shared.topic_id:
                state = None
            served = self._topics.get(name)
            if state is None or not self._is_in_charge(state):
                if served is not None:
                    await self._let_go(name)
                await self._release(name)
                if state is None:
                    await self._forget_deleted(name, shared)
            elif (
                name not in self._claimed
                or served is None
                or self._serving_keys[name] != self._serving_key(shared, state)
            ):
                await self._serve(name, shared, state)

    @staticmethod
    def _serving_key(shared: Shared, state: TopicState) -> object:
        """How to serve the topic, and in which epoch: another broker may have served it between two epochs."""
        _, epoch = state.partitions[0].leader
        return shared.serving_key, len(state.partitions), epoch

    def _is_in_charge(self, state: TopicState) -> bool:
        return state.partitions[0].leads

    async def _serve(self, name: str, shared: Shared, state: TopicState) -> None:
        if name in self._topics:
            await self._let_go(name)
        ports, serving_key = list(shared.ports), self._serving_key(shared, state)
        exposure = Exposure(topic=name, topic_id=shared.topic_id, ports=ports, principal=shared.principal)
        await self._claim(name)
        fence = PushFence(self._broker, self._cluster, self._shards, name, lambda: self._serve_again(name))
        await self._open(ServedTopic(exposure, self._config, fence), takes_other_ports=True)
        # Set once the addresses are published: until then, it is tried again.
        self._serving_keys[name] = None
        served = self._topics[name]
        endpoints = [f"{self._host}:{port}" for port in served.ports]
        before = shared.endpoints
        await self._cluster.work(lambda: self._shards.announce(name, before, endpoints, served.next_sequence))
        mine = msgspec.structs.replace(
            shared, node=self._cluster.node_id, endpoints=endpoints, http=self._http, is_tls=served.is_tls
        )
        await self._put(name, mine)
        self._serving_keys[name] = serving_key
        _logger.info("serving topic %s over DMQP at %s", name, ", ".join(endpoints))

    def _serve_again(self, name: str) -> None:
        self._serving_keys[name] = None
        self._changed.set()

    async def _claim(self, name: str) -> None:
        """Claim the topic. The previous node may not know yet that it no longer serves it: wait for its last push and
        pop.
        """
        for _ in range(_CLAIM_TRIES):
            self._claimed.add(name)
            self._unreleased.add(name)
            if await self._cluster.work(lambda: self._shards.claim(name, self._cluster.node_id)):
                # A session that was lost meanwhile has removed the claim.
                if name in self._claimed:
                    return
                break
            self._claimed.discard(name)
            await asyncio.sleep(_CLAIM_AGAIN_S)
        raise RequestTimedOut(f"another node still serves {name}")

    async def _let_go(self, name: str) -> None:
        served = self._topics[name]
        endpoints = [f"{self._host}:{port}" for port in served.ports]
        self._told_consumers.pop(name, None)
        await self._close(served)
        if not self._cluster.is_fenced and name in self._shards.known():
            withdrawal = self._cluster.work(lambda: self._shards.withdraw(name, endpoints))
            await self._tried(withdrawal, f"withdraw the DMQP addresses of {name}")
        await self._release(name)

    async def _release(self, name: str) -> None:
        self._claimed.discard(name)
        if name not in self._unreleased:
            return
        release = self._cluster.work(lambda: self._shards.release(name, self._cluster.node_id))
        if await self._tried(release, f"release the DMQP claim to {name}"):
            self._unreleased.discard(name)
        else:
            # No other node can serve the topic until then.
            asyncio.get_running_loop().call_later(_AGAIN_S, self._changed.set)

    async def _forget_deleted(self, name: str, shared: Shared) -> None:
        """Forget a deleted topic. It has no leader, so the controller cleans up."""
        if self._cluster.view.controller_id == self._cluster.node_id:
            await self._cluster.work(lambda: self._shards.remove(name, shared.endpoints, ()))

    async def _put(self, topic: str, shared: Shared) -> None:
        await self._cluster.work(lambda: self._shards.put(topic, msgspec.json.encode(shared)))

    @property
    def _host(self) -> str:
        """The shards' host for clients: advertised, bound, or the one that clients used to reach the broker."""
        return self._config.advertised_host or self._reached(self._config.host)

    @property
    def _http(self) -> str:
        address = self._broker.http_address
        return "" if address is None else f"{self._reached(address.host)}:{address.port}"

    def _reached(self, host: str) -> str:
        me = self._cluster.view.brokers.get(self._cluster.node_id)
        return me.address.host if host in ANY_HOST and me is not None else host
