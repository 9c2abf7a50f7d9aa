"""Sending the messages of `ottla produce`, also those above the client's default batch size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.client.admin.configs import ConfigResource
from ottla.client.errors import ClientError, RecordTooLarge

if TYPE_CHECKING:
    from typing import Self

    from ottla.cli.messages.lines import Message
    from ottla.client.client import Client
    from ottla.client.producer.producer import Producer

_LIMIT: Final = "max.message.bytes"


class Sending:
    """A producer of one topic. The first message that does not fit a batch replaces it by one with larger batches."""

    def __init__(self, client: Client, topic: str, options: dict[str, Any]) -> None:
        self._client = client
        self._topic = topic
        self._options = options
        self._producer: Producer[bytes, bytes] = client.producer(**options)
        self._limit: int | None = None

    async def __aenter__(self) -> Self:
        await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.close()

    async def send(self, message: Message) -> None:
        try:
            await self._send(message)
        except RecordTooLarge as too_large:
            await self._make_room(too_large)
            try:
                await self._send(message)
            except RecordTooLarge:
                raise self._refusal(too_large) from None

    async def flush(self) -> None:
        await self._producer.flush()

    async def _send(self, message: Message) -> None:
        _ = await self._producer.send(
            self._topic,
            message.value,
            key=message.key,
            partition=message.partition,
            timestamp_ms=message.timestamp_ms,
            headers=message.headers,
        )

    async def _make_room(self, too_large: RecordTooLarge) -> None:
        self._limit = self._limit or await self._topic_limit()
        if self._limit is None:
            raise too_large
        if self._limit <= self._producer.config.producer_max_bytes:
            raise self._refusal(too_large)
        await self._producer.close()
        self._producer = self._client.producer(**self._options | {"producer_max_bytes": self._limit})
        await self._producer.start()

    async def _topic_limit(self) -> int | None:
        try:
            found = await self._client.admin.describe_configs(ConfigResource.topic(self._topic), [_LIMIT])
            return int(found[_LIMIT].value or "")
        except (ClientError, KeyError, ValueError):
            # Describing configs needs another permission than writing.
            return None

    def _refusal(self, too_large: RecordTooLarge) -> RecordTooLarge:
        return RecordTooLarge(
            too_large.code,
            f"a message is larger than {_LIMIT} of {self._topic} ({self._limit}); send smaller messages, or run: "
            f"ottla topic alter {self._topic} --set {_LIMIT}=BYTES",
        )
