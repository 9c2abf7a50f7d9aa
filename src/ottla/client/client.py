"""The client: one view of the cluster and one set of connections for all it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from ottla.client.addresses import parse_addresses
from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from ottla.client.errors import ClientClosed, ClientError
from ottla.client.router import Router
from ottla.client.serializers import deserializer_for, serializer_for
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self, Unpack

    from ottla.client.consumer.consumer import Consumer
    from ottla.client.options import ClientOptions, ConsumerOptions, ProducerOptions
    from ottla.client.producer.producer import Producer
    from ottla.client.serializers import Deserializer, Json, Name, Raw, Serializer, Text

K = TypeVar("K")
V = TypeVar("V")


class _Closable(Protocol):
    async def close(self) -> None: ...


_ClosableT = TypeVar("_ClosableT", bound=_Closable)


class Client:
    """`async with Client("localhost:9092") as client:`; what it made is closed with it."""

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
        """Find the cluster; fails if no broker can be reached."""
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
        """Close what this client made, the newest first, then its connections. May be called again."""
        if self._is_closed:
            return
        made, self._made = self._made, []
        try:
            for each in reversed(made):
                await each.close()
        finally:
            self._is_closed = True
            if self._router is not None:
                await self._router.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def topics(self) -> list[str]:
        """The names of all topics but Kafka's own."""
        await self.router.refresh()
        known = self.router.view.topics.values()
        return sorted(topic.name for topic in known if topic.error is ErrorCode.NONE and not topic.is_internal)

    async def partitions(self, topic: str) -> list[int]:
        """The partitions of this topic."""
        return list((await self.router.topic(topic)).partitions)

    # Making producers and consumers; the types of their keys and values follow from how those are (de)serialized

    @overload
    def producer(
        self, *, key_serializer: Raw = "bytes", value_serializer: Raw = "bytes", **options: Unpack[ProducerOptions]
    ) -> Producer[bytes, bytes]: ...
    @overload
    def producer(
        self, *, key_serializer: Raw = "bytes", value_serializer: Text, **options: Unpack[ProducerOptions]
    ) -> Producer[bytes, str]: ...
    @overload
    def producer(
        self, *, key_serializer: Raw = "bytes", value_serializer: Json, **options: Unpack[ProducerOptions]
    ) -> Producer[bytes, Any]: ...
    @overload
    def producer(
        self, *, key_serializer: Raw = "bytes", value_serializer: Serializer[V], **options: Unpack[ProducerOptions]
    ) -> Producer[bytes, V]: ...
    @overload
    def producer(
        self, *, key_serializer: Text, value_serializer: Raw = "bytes", **options: Unpack[ProducerOptions]
    ) -> Producer[str, bytes]: ...
    @overload
    def producer(
        self, *, key_serializer: Text, value_serializer: Text, **options: Unpack[ProducerOptions]
    ) -> Producer[str, str]: ...
    @overload
    def producer(
        self, *, key_serializer: Text, value_serializer: Json, **options: Unpack[ProducerOptions]
    ) -> Producer[str, Any]: ...
    @overload
    def producer(
        self, *, key_serializer: Text, value_serializer: Serializer[V], **options: Unpack[ProducerOptions]
    ) -> Producer[str, V]: ...
    @overload
    def producer(
        self, *, key_serializer: Json, value_serializer: Raw = "bytes", **options: Unpack[ProducerOptions]
    ) -> Producer[Any, bytes]: ...
    @overload
    def producer(
        self, *, key_serializer: Json, value_serializer: Text, **options: Unpack[ProducerOptions]
    ) -> Producer[Any, str]: ...
    @overload
    def producer(
        self, *, key_serializer: Json, value_serializer: Json, **options: Unpack[ProducerOptions]
    ) -> Producer[Any, Any]: ...
    @overload
    def producer(
        self, *, key_serializer: Json, value_serializer: Serializer[V], **options: Unpack[ProducerOptions]
    ) -> Producer[Any, V]: ...
    @overload
    def producer(
        self, *, key_serializer: Serializer[K], value_serializer: Raw = "bytes", **options: Unpack[ProducerOptions]
    ) -> Producer[K, bytes]: ...
    @overload
    def producer(
        self, *, key_serializer: Serializer[K], value_serializer: Text, **options: Unpack[ProducerOptions]
    ) -> Producer[K, str]: ...
    @overload
    def producer(
        self, *, key_serializer: Serializer[K], value_serializer: Json, **options: Unpack[ProducerOptions]
    ) -> Producer[K, Any]: ...
    @overload
    def producer(
        self, *, key_serializer: Serializer[K], value_serializer: Serializer[V], **options: Unpack[ProducerOptions]
    ) -> Producer[K, V]: ...
    def producer(
        self,
        *,
        key_serializer: Name | Serializer[Any] = "bytes",
        value_serializer: Name | Serializer[Any] = "bytes",
        **options: Unpack[ProducerOptions],
    ) -> Producer[Any, Any]:
        """A producer, to be used in an `async with` block."""
        from ottla.client.producer.producer import Producer

        return self._keep(
            Producer(
                self.router,
                ProducerConfig(**options),
                key_serializer=serializer_for("key_serializer", key_serializer),
                value_serializer=serializer_for("value_serializer", value_serializer),
            )
        )

    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Raw = "bytes",
        value_deserializer: Raw = "bytes",
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[bytes, bytes]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Raw = "bytes",
        value_deserializer: Text,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[bytes, str]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Raw = "bytes",
        value_deserializer: Json,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[bytes, Any]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Raw = "bytes",
        value_deserializer: Deserializer[V],
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[bytes, V]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Text,
        value_deserializer: Raw = "bytes",
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[str, bytes]: ...
    @overload
    def consumer(
        self, *topics: str, key_deserializer: Text, value_deserializer: Text, **options: Unpack[ConsumerOptions]
    ) -> Consumer[str, str]: ...
    @overload
    def consumer(
        self, *topics: str, key_deserializer: Text, value_deserializer: Json, **options: Unpack[ConsumerOptions]
    ) -> Consumer[str, Any]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Text,
        value_deserializer: Deserializer[V],
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[str, V]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Json,
        value_deserializer: Raw = "bytes",
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[Any, bytes]: ...
    @overload
    def consumer(
        self, *topics: str, key_deserializer: Json, value_deserializer: Text, **options: Unpack[ConsumerOptions]
    ) -> Consumer[Any, str]: ...
    @overload
    def consumer(
        self, *topics: str, key_deserializer: Json, value_deserializer: Json, **options: Unpack[ConsumerOptions]
    ) -> Consumer[Any, Any]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Json,
        value_deserializer: Deserializer[V],
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[Any, V]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Deserializer[K],
        value_deserializer: Raw = "bytes",
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, bytes]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Deserializer[K],
        value_deserializer: Text,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, str]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Deserializer[K],
        value_deserializer: Json,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, Any]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Deserializer[K],
        value_deserializer: Deserializer[V],
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, V]: ...
    def consumer(
        self,
        *topics: str,
        key_deserializer: Name | Deserializer[Any] = "bytes",
        value_deserializer: Name | Deserializer[Any] = "bytes",
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[Any, Any]:
        """A consumer of these topics, to be used in an `async with` block; of none, if it is to be assigned later."""
        from ottla.client.consumer.consumer import Consumer

        return self._keep(
            Consumer(
                self.router,
                ConsumerConfig(**options),
                topics,
                key_deserializer=deserializer_for("key_deserializer", key_deserializer),
                value_deserializer=deserializer_for("value_deserializer", value_deserializer),
            )
        )

    def _keep(self, made: _ClosableT) -> _ClosableT:
        self._made.append(made)
        return made
