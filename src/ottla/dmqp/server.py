"""The DMQP server of a broker: exposed topics, each shard on its own port."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError, InvalidRequest, StorageError, UnknownTopicOrPartition
from ottla.core.security import ANONYMOUS
from ottla.dmqp.exposures import Exposure, ExposuresFile
from ottla.dmqp.preparing import prepare
from ottla.dmqp.served_topic import ServedTopic
from ottla.dmqp.service import DmqpService

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.interfaces.protocol_servers import Exposed
    from ottla.dmqp.config import DmqpConfig

_logger: Final = logging.getLogger(__name__)


class DmqpServer:
    def __init__(self, broker: Broker, config: DmqpConfig) -> None:
        self.lease_ms = config.lease_ms
        self._broker = broker
        self._config = config
        self._file = ExposuresFile(broker.data_dir.path)
        self._service = DmqpService(config, broker)
        self.stats = self._service.stats
        self._topics: dict[str, ServedTopic] = {}
        self._changing = asyncio.Lock()
        self._forgetting: set[asyncio.Task[None]] = set()

    # Starting and stopping

    async def start(self) -> None:
        """Expose the stored topics again."""
        self._service.start()
        for exposure in self._file.read():
            state = self._broker.topics.by_name.get(exposure.topic)
            if state is None or state.entry.id.text != exposure.topic_id:
                _logger.warning("topic %s is no longer exposed over DMQP: it was deleted", exposure.topic)
                continue
            try:
                await self._open(ServedTopic(exposure, self._config), takes_other_ports=True)
            except (ApiError, OSError) as refused:
                _logger.error("could not serve topic %s over DMQP: %s", exposure.topic, refused)

    async def stop(self) -> None:
        """Answer received requests, then close."""
        async with self._changing:
            topics = list(self._topics.values())
            await asyncio.gather(*(topic.close() for topic in topics))
            for topic in topics:
                if topic.exposure.topic in self._broker.topics.by_name:
                    topic.note_sequence()
            if topics:
                # The counter is restored from the logs at the next start.
                with suppress(StorageError):
                    await self._write()
            self._topics.clear()
            self._service.stop()

    # Called by REST

    def exposed(self) -> list[Exposed]:
        return [self.find(name) for name in sorted(self._topics)]

    def find(self, topic: str) -> Exposed:
        return self._find(topic).described(self._now_ms())

    async def expose(self, topic: str, ports: Sequence[int], principal: str = ANONYMOUS) -> Exposed:
        async with self._changing:
            state = self._broker.topics.by_name.get(topic)
            if state is None:
                raise UnknownTopicOrPartition(f"no topic {topic!r}")
            chosen = [port for port in ports if port]
            if len(ports) > len(state.partitions) or len(set(chosen)) < len(chosen):
                raise InvalidRequest(f"topic {topic} has {len(state.partitions)} shards; give one port for each")
            await prepare(self._broker, state, principal)
            before = self._topics.get(topic)
            exposure = Exposure(topic=topic, topic_id=state.entry.id.text, ports=list(ports), principal=principal)
            if before is not None:
                exposure.ports += before.exposure.ports[len(ports) :]
                await self._close(before)
            try:
                await self._open(ServedTopic(exposure, self._config), takes_other_ports=False)
            except OSError as refused:
                if before is not None:
                    await self._open(ServedTopic(before.exposure, self._config), takes_other_ports=True)
                raise InvalidRequest(f"could not serve {topic} over DMQP: {refused.strerror or refused}") from None
            exposure.ports = self._topics[topic].ports
            await self._write()
            return self.find(topic)

    async def unexpose(self, topic: str) -> None:
        async with self._changing:
            await self._close(self._find(topic))
            await self._write()

    def elsewhere(self, topic: str) -> str | None:
        self._find(topic)
        return None

    def register(self, topic: str, consumer: str) -> tuple[int, ...]:
        found = self._find(topic)
        return found.leases.register(consumer, found.shards, self._now_ms())

    def unregister(self, topic: str, consumer: str) -> None:
        self._find(topic).leases.unregister(consumer)

    def topic_deleted(self, topic: str) -> None:
        found = self._topics.get(topic)
        if found is not None:
            task = asyncio.get_running_loop().create_task(self._forget(found))
            self._forgetting.add(task)
            task.add_done_callback(self._forgetting.discard)

    async def _forget(self, topic: ServedTopic) -> None:
        async with self._changing:
            if self._topics.get(topic.exposure.topic) is topic:
                await self._close(topic)
                await self._write()

    # Topics

    def _find(self, topic: str) -> ServedTopic:
        found = self._topics.get(topic)
        if found is None:
            raise UnknownTopicOrPartition(f"topic {topic!r} is not exposed over DMQP")
        return found

    async def _open(self, topic: ServedTopic, *, takes_other_ports: bool) -> None:
        tls = None if self._service.tls is None else self._service.tls.context
        await topic.open(self._broker, self._service, tls, takes_other_ports=takes_other_ports)
        self._topics[topic.exposure.topic] = topic

    async def _close(self, topic: ServedTopic) -> None:
        del self._topics[topic.exposure.topic]
        await topic.close()

    async def _write(self) -> None:
        exposures = [self._topics[name].exposure for name in sorted(self._topics)]
        await asyncio.get_running_loop().run_in_executor(None, self._file.write, exposures)

    def _now_ms(self) -> int:
        return self._broker.steady_clock.now_ms()
