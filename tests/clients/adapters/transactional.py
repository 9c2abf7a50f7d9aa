"""One interface to the transactional producers of every client. Only the clients retry, never the adapter."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

import aiokafka
import confluent_kafka
import kafka
from aiokafka.errors import KafkaError as AioError
from kafka.errors import KafkaError as PythonError
from kafka.structs import OffsetAndMetadata

import ottla
from ottla.client.errors import ClientError
from ottla.client.group.interface import Committed, GroupProgress

from .aio import _await
from .base import PATIENCE_S, Refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Self

    from ottla.core.ids import TopicPartition

QUICK_MS: Final = 50


class Transactional(ABC):
    """A producer with a transactional id; every error is raised as Refused."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, value: bytes) -> None:
        """Send a record; errors are raised at the end of the transaction."""

    @abstractmethod
    def send_offset(self, group: str, at: TopicPartition, offset: int) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ConfluentTransactional(Transactional):
    def __init__(self, servers: str, name: str) -> None:
        self._servers = servers
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": name,
                "log_level": 0,
                "reconnect.backoff.max.ms": 250,
                # When it refreshes all brokers, librdkafka 2.16 goes on asking a group's coordinator through a
                # connection that it has closed, and hangs.
                "metadata.recovery.strategy": "none",
            }
        )
        self._call(lambda: self._producer.init_transactions(PATIENCE_S))

    def _call(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except confluent_kafka.KafkaException as error:
            raise Refused(error.args[0].code(), error.args[0].str()) from error

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes) -> None:
        self._call(lambda: self._producer.produce(topic, value))
        self._producer.poll(0)

    def send_offset(self, group: str, at: TopicPartition, offset: int) -> None:
        offsets = [confluent_kafka.TopicPartition(at.topic, at.partition, offset)]
        nobody = confluent_kafka.Consumer({"bootstrap.servers": self._servers, "group.id": group, "log_level": 0})
        try:
            metadata = nobody.consumer_group_metadata()
            self._call(lambda: self._producer.send_offsets_to_transaction(offsets, metadata, PATIENCE_S))
        finally:
            nobody.close()

    def commit(self) -> None:
        self._call(lambda: self._producer.commit_transaction(PATIENCE_S))

    def abort(self) -> None:
        self._call(lambda: self._producer.abort_transaction(PATIENCE_S))

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(PATIENCE_S)


class KafkaPythonTransactional(Transactional):
    def __init__(self, servers: str, name: str) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=servers,
            transactional_id=name,
            retry_backoff_ms=QUICK_MS,
            reconnect_backoff_max_ms=250,
            max_block_ms=PATIENCE_S * 1000,
        )
        self._call(self._producer.init_transactions)

    def _call(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except PythonError as error:
            raise Refused(getattr(error, "errno", -1), repr(error)) from error

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes) -> None:
        self._call(lambda: self._producer.send(topic, value))

    def send_offset(self, group: str, at: TopicPartition, offset: int) -> None:
        offsets = {kafka.TopicPartition(at.topic, at.partition): OffsetAndMetadata(offset, "", -1)}
        self._call(lambda: self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._call(lambda: self._producer.close(PATIENCE_S))


class AiokafkaTransactional(Transactional):
    def __init__(self, servers: str, name: str) -> None:
        self._producer = _await(self._start(servers, name))

    async def _start(self, servers: str, name: str) -> aiokafka.AIOKafkaProducer:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers, transactional_id=name, retry_backoff_ms=QUICK_MS
        )
        await producer.start()
        return producer

    def _call(self, work: Callable[[], Any]) -> None:
        async def awaited() -> None:
            try:
                await work()
            except (AioError, AssertionError) as error:
                raise Refused(getattr(error, "errno", -1), repr(error)) from error

        _await(awaited())

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes) -> None:
        self._call(lambda: self._producer.send(topic, value))

    def send_offset(self, group: str, at: TopicPartition, offset: int) -> None:
        offsets = {aiokafka.TopicPartition(at.topic, at.partition): offset}
        self._call(lambda: self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        _await(self._producer.stop())


class OttlaTransactional(Transactional):
    def __init__(self, servers: str, name: str) -> None:
        self._producer: ottla.Producer[bytes, bytes] = ottla.Producer(
            servers, transactional_id=name, metadata_refresh_retry_count=0, backoff_max_ms=250
        )
        self._transaction: AbstractContextManager[None] | None = None

    def begin(self) -> None:
        self._transaction = self._producer.transaction()
        self._call(self._transaction.__enter__)

    def _call(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except ClientError as error:
            raise Refused(getattr(error, "code", -1), repr(error)) from error

    def send(self, topic: str, value: bytes) -> None:
        self._call(lambda: self._producer.send(topic, value))

    def send_offset(self, group: str, at: TopicPartition, offset: int) -> None:
        self._call(lambda: self._producer.send_offsets(GroupProgress(group, {at: Committed(offset)})))

    def commit(self) -> None:
        self._end(None)

    def abort(self) -> None:
        self._end(_Aborted())

    def _end(self, error: BaseException | None) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return  # the failed commit aborted it
        with contextlib.suppress(_Aborted):
            self._call(lambda: transaction.__exit__(type(error) if error else None, error, None))

    def close(self) -> None:
        self._call(self._producer.close)


class _Aborted(Exception):  # noqa: N818
    """Raised to leave the block of a transaction."""


TRANSACTIONAL: Final[dict[str, Callable[[str, str], Transactional]]] = {
    "confluent-kafka": ConfluentTransactional,
    "kafka-python": KafkaPythonTransactional,
    "aiokafka": AiokafkaTransactional,
    "ottla": OttlaTransactional,
}
