"""The client: one view of the cluster and one set of connections, shared by its producers and consumers."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol, TypeVar

from ottla.client.addresses import parse_addresses
from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from ottla.client.errors import ClientClosed, ClientError
from ottla.client.router import Router
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self, Unpack

    from ottla.client.admin.admin import Admin
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.options import ClientOptions, ConsumerOptions, ProducerOptions
    from ottla.client.producer.producer import Producer
    from ottla.client.serializers import Deserializer, Serializer
    from ottla.client.typing import K, V


class _Closable(Protocol):
    @property
    def is_closed(self) -> bool: ...
    async def close(self) -> None: ...


_ClosableT = TypeVar("_ClosableT", bound=_Closable)


class Client:
    """`async with Client("localhost:9092") as client:`; closing it also closes everything it created."""

    def __init__(self, servers: str | Iterable[str], **options: Unpack[ClientOptions]) -> None:
        self.config = ClientConfig(**options)
        self._bootstrap = parse_addresses(servers)
        self._router: Router | None = None
        self._is_closed = False
        self._made: list[_Closable] = []

    @property
    def router(self) -> Router:
        if self._is_closed:
            raise ClientClosed
        if self._router is None:
            raise ClientError("the client is not connected; use it in an `async with` block, or call start()")
        return self._router

    async def start(self) -> None:
        """Connect to the cluster; fails if no broker is reachable."""
        if self._is_closed:
            raise ClientClosed
        if self._router is not None:
            return
        self._router = Router(self._bootstrap, self.config)
        try:
            await self._router.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close producers and consumers, the newest first, then the connections. Idempotent.

        An error does not stop the rest from being closed; the first one is raised at the end.
        """
        if self._is_closed:
            return
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self._close_router)
            while self._made:
                closing.push_async_callback(self._made.pop(0).close)

    async def _close_router(self) -> None:
        self._is_closed = True
        if self._router is not None:
            await self._router.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def admin(self) -> Admin:
        """Topics, configs, groups and offsets."""
        from ottla.client.admin.admin import Admin

        return Admin(self.router)

    async def topics(self) -> list[str]:
        """The names of all topics except internal ones."""
        await self.router.refresh()
        known = self.router.view.topics.values()
        return sorted(topic.name for topic in known if topic.error is ErrorCode.NONE and not topic.is_internal)

    async def partitions(self, topic: str) -> list[int]:
        """The partitions of this topic."""
        return list((await self.router.topic(topic)).partitions)

    # Producers and consumers; their key and value types follow from the (de)serializers

    def producer(
        self,
        *,
        key_serializer: Serializer[K] | None = None,
        value_serializer: Serializer[V] | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[K, V]:
        """A producer, for an `async with` block; of bytes, unless serializers are given."""
        from ottla.client.producer.producer import Producer

        config = ProducerConfig(**options)
        return self._keep(
            Producer(self.router, config, key_serializer=key_serializer, value_serializer=value_serializer)
        )

    def consumer(
        self,
        *topics: str,
        key_deserializer: Deserializer[K] | None = None,
        value_deserializer: Deserializer[V] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, V]:
        """A consumer of these topics, for an `async with` block; without topics, assign partitions later."""
        from ottla.client.consumer.consumer import Consumer

        return self._keep(
            Consumer(
                self.router,
                ConsumerConfig(**options),
                topics,
                key_deserializer=key_deserializer,
                value_deserializer=value_deserializer,
            )
        )

    def _keep(self, made: _ClosableT) -> _ClosableT:
        self._made = [each for each in self._made if not each.is_closed]
        self._made.append(made)
        return made
