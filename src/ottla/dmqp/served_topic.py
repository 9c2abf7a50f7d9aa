"""One served topic: its shards, ports, counter and consumers."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.protocol_servers import Exposed, ShardAddress
from ottla.dmqp.leases import Leases
from ottla.dmqp.listening import ShardListener
from ottla.dmqp.restoring import highest_sequence
from ottla.dmqp.sequences import Counter
from ottla.dmqp.shard import Shard
from ottla.dmqp.shard_log import ShardLog

if TYPE_CHECKING:
    import ssl

    from ottla.broker.broker import Broker
    from ottla.dmqp.config import DmqpConfig
    from ottla.dmqp.exposures import Exposure
    from ottla.dmqp.fencing import PushFence
    from ottla.dmqp.service import DmqpService

_logger: Final = logging.getLogger(__name__)

ANY_HOST: Final = ("", "0.0.0.0", "::")  # noqa: S104 - recognised, not listened on


class ServedTopic:
    def __init__(self, exposure: Exposure, config: DmqpConfig, fence: PushFence | None = None) -> None:
        """`fence`: in a cluster, where other nodes may have served the topic before."""
        self.exposure = exposure
        self._fence = fence
        self.leases = Leases(config.lease_ms)
        self._config = config
        self._counter = Counter()
        self._logs: list[ShardLog] = []
        self._listeners: list[ShardListener] = []
        self.is_tls = False

    @property
    def shards(self) -> int:
        return len(self._listeners)

    async def open(
        self, broker: Broker, service: DmqpService, tls: ssl.SSLContext | None, *, takes_other_ports: bool
    ) -> None:
        """Serve every shard; raises ApiError or OSError, without serving any, if that fails."""
        topic = self.exposure.topic
        self.is_tls = tls is not None
        partitions, principal = broker.topics.by_name[topic].partitions, self.exposure.principal
        self._logs = [ShardLog(broker, topic, one.at.partition, principal) for one in partitions]
        for log in self._logs:
            await log.settle()
        if self._fence is not None:
            producer = await self._fence.take_over([log.shard for log in self._logs])
            for log in self._logs:
                log.push_as(producer, self._fence)
                # Once more: only now can no push of another node change the end.
                await log.settle()
        await self._restore_counter()
        try:
            for log in self._logs:
                listener = ShardListener(Shard(log, self._counter, await log.take_over()), service)
                wanted = self.exposure.ports[log.shard] if log.shard < len(self.exposure.ports) else 0
                try:
                    await listener.start(self._config, wanted, tls)
                except OSError as taken:
                    if not takes_other_ports or not wanted:
                        raise
                    _logger.warning(
                        "DMQP port %d of %s-%d is not available: %s", wanted, topic, log.shard, taken.strerror
                    )
                    await listener.start(self._config, 0, tls)
                self._listeners.append(listener)
        except BaseException:
            await self.close()
            raise

    async def _restore_counter(self) -> None:
        self._counter.next = self.exposure.next_sequence
        ends = self.exposure.ends
        for log in self._logs:
            highest = await highest_sequence(log, ends[log.shard] if log.shard < len(ends) else 0)
            if highest is not None:
                self._counter.pass_over(highest)
        self.note_sequence()

    def note_sequence(self) -> None:
        """Store the sequence id, so that older records need not be searched again. Not while pushes are in progress."""
        self.exposure.next_sequence = self._counter.next
        self.exposure.ends = [log.end for log in self._logs]

    @property
    def next_sequence(self) -> int:
        return self._counter.next

    @property
    def ports(self) -> list[int]:
        return [listener.port for listener in self._listeners]

    def described(self, now_ms: int) -> Exposed:
        config = self._config
        host = config.advertised_host or ("" if config.host in ANY_HOST else config.host)
        return Exposed(
            self.exposure.topic,
            self.is_tls,
            tuple(ShardAddress(shard, host, port) for shard, port in enumerate(self.ports)),
            self.leases.shares(self.shards, now_ms),
        )

    async def close(self) -> None:
        await asyncio.gather(*(listener.stop() for listener in self._listeners))
        self._listeners.clear()
