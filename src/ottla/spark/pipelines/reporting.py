"""Status reports of a pipeline to the broker, for REST and the console."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.client.errors import BrokerError, ClientError
from ottla.core.errors import ErrorCode
from ottla.core.pipeline_status import PIPELINES_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.client.blocking.background import Background
    from ottla.client.client import Client
    from ottla.core.pipeline_status import PipelineStatus

_log: Final = logging.getLogger(__name__)
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    # The broker's clock decides whether a pipeline is silent.
    "message.timestamp.type": "LogAppendTime",
    "segment.bytes": str(1 << 20),
}
_DELIVERY_MS: Final = 4000


class Reporter:
    def __init__(self, link: Background) -> None:
        self._link = link
        self._is_ready = False
        self._is_complaining = False

    def tell(self, status: PipelineStatus) -> None:
        """An unreachable broker does not stop a pipeline."""
        try:
            self._link.call(self._tell(status))
            self._is_complaining = False
        except ClientError as failed:
            if not self._is_complaining:
                _log.warning("could not report the status of pipeline %s: %s", status.name, failed)
            self._is_complaining = True

    async def _tell(self, status: PipelineStatus) -> None:
        client = self._link.client
        if not self._is_ready:
            await ensure_topics(client, [PIPELINES_TOPIC], partitions=1, configs=_CONFIGS)
            self._is_ready = True
        async with client.producer(
            delivery_timeout_ms=_DELIVERY_MS, produce_request_timeout_ms=_DELIVERY_MS, idempotence=False
        ) as producer:
            await (await producer.send(PIPELINES_TOPIC, msgspec.json.encode(status), key=status.name.encode()))


async def ensure_topics(
    client: Client, topics: Iterable[str], *, partitions: int = -1, configs: Mapping[str, str] | None = None
) -> None:
    """Create missing topics."""
    existing = set(await client.admin.list_topics(include_internal=True))
    for topic in dict.fromkeys(topics):
        if topic in existing:
            continue
        try:
            await client.admin.create_topic(topic, partitions=partitions, configs=dict(configs or {}))
        except BrokerError as refused:
            if refused.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
