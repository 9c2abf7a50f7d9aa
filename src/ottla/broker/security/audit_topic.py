"""The topic target of the audit log: an internal topic of this broker or cluster.

Lines wait in a bounded queue for a task that produces them, without ACLs, quotas or auditing: writing
them causes no further lines, and no request waits for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.in_process_requests import LocalClient
from ottla.broker.requests.answers import settled
from ottla.broker.topics import AUDIT
from ottla.core.errors import ApiError, ErrorCode, OttlaError
from ottla.records.encode import BatchBuilder
from ottla.wire import apis
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_logger: Final = logging.getLogger(__name__)

_MOST_LINES: Final = 10_000
_MOST_BYTES: Final = 8 << 20
_BATCH_BYTES: Final = 256 << 10
_PRODUCE_VERSION: Final = 12
"""The last Produce version with topic names."""
_TIMEOUT_MS: Final = 10_000
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0
_STOP_S: Final = 2.0


class AuditClient(LocalClient):
    """The only client that may write to the audit topic."""


class AuditTopic:
    name = "topic"

    def __init__(self, broker: Broker) -> None:
        self.dropped = 0
        self._broker = broker
        self._lines: deque[tuple[int, bytes]] = deque()
        self._held = 0
        self._client: AuditClient | None = None
        self._task: asyncio.Task[None] | None = None

    def write(self, line: bytes, now_s: float) -> None:
        if len(self._lines) >= _MOST_LINES or self._held + len(line) > _MOST_BYTES:
            self.dropped += 1
            return
        self._lines.append((int(now_s * 1000), line))
        self._held += len(line)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._drain())

    def close(self) -> None:
        self.dropped += len(self._lines)
        self._lines.clear()

    async def stop(self) -> None:
        """Wait briefly until everything is written."""
        if self._task is not None:
            with suppress(asyncio.TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(self._task, _STOP_S)

    async def _drain(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while self._lines:
            count, batch = self._next_batch()
            try:
                await self._produce(batch)
            except OttlaError as failed:
                log = _logger.warning if pause_s == _FIRST_PAUSE_S else _logger.debug
                log("%s: could not write the audit log: %s", AUDIT, failed)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            pause_s = _FIRST_PAUSE_S
            for _ in range(count):
                self._held -= len(self._lines.popleft()[1])

    def _next_batch(self) -> tuple[int, bytearray]:
        builder, count, size = BatchBuilder(), 0, 0
        for at_ms, line in self._lines:
            if count and size + len(line) > _BATCH_BYTES:
                break
            builder.append(at_ms, None, line)
            count += 1
            size += len(line)
        return count, bytearray(builder.build())

    async def _produce(self, batch: bytearray) -> None:
        broker = self._broker
        if AUDIT not in broker.topics.by_name:
            broker.create_topic(AUDIT)
        if self._client is None:
            self._client = AuditClient(broker, "audit", ("127.0.0.1", 0))
        data = PartitionProduceData(index=0, records=memoryview(batch))
        topics = (TopicProduceData(name=AUDIT, partition_data=(data,)),)
        request = ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=topics)
        context = self._client.context(request, _PRODUCE_VERSION)
        answer = await settled(broker.dispatcher.unguarded(apis.PRODUCE)(broker, request, context))
        result = answer.responses[0].partition_responses[0]
        if result.error_code:
            raise _Refused(result.error_message or ErrorCode(result.error_code).name)


class _Refused(ApiError):
    pass
