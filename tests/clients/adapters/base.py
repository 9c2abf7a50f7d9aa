"""The interface that tests use for every Kafka client.

An adapter hides only a client's API, not its behaviour: it does not retry, reconnect or sort.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Future
    from typing import Self

PATIENCE_S: Final = 20.0
"""Timeout of every wait; only reached when a test fails."""

Headers = tuple[tuple[str, bytes | None], ...]


class Refused(Exception):  # noqa: N818
    """The client reports a broker error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Placed(NamedTuple):
    """Partition and offset of a record, as acknowledged by the broker."""

    partition: int
    offset: int


class Received(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Committed(NamedTuple):
    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    acks: int = -1
    is_idempotent: bool = False
    compression: str | None = None
    max_request_bytes: int = 1_000_000
    linger_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    group: str | None = None
    instance: str | None = None
    session_timeout_ms: int = 10_000
    commits_by_itself: bool = False
    creates_topics: bool = True
    is_cooperative: bool = False
    metadata_max_age_ms: int = 300_000
    is_committed_only: bool = False
    follows_broker: bool = False
    """Whether the broker assigns partitions (KIP-848) instead of the members."""


DEFAULT_PRODUCER: Final = ProducerOptions()
DEFAULT_CONSUMER: Final = ConsumerOptions()


class Producer(ABC):
    @abstractmethod
    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Future[Placed]:
        """Send a record; on an error the future raises Refused."""

    @abstractmethod
    def flush(self) -> None:
        """Return once every record is acknowledged or failed."""

    @abstractmethod
    def close(self) -> None: ...

    def place(self, topic: str, value: bytes | None, partition: int | None = None) -> Placed:
        """Send one record and wait for its offset."""
        sent = self.send(topic, value, partition=partition)
        self.flush()
        return sent.result(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Consumer(ABC):
    @abstractmethod
    def subscribe(self, *topics: str) -> None: ...

    @abstractmethod
    def assign(self, *partitions: TopicPartition) -> None: ...

    @abstractmethod
    def assignment(self) -> set[TopicPartition]: ...

    @abstractmethod
    def poll(self, timeout_s: float = 0.1, most: int = 500) -> list[Received]:
        """The records received, possibly none; an error raises Refused."""

    @abstractmethod
    def seek(self, at: TopicPartition, offset: int) -> None: ...

    @abstractmethod
    def position(self, at: TopicPartition) -> int: ...

    @abstractmethod
    def pause(self, at: TopicPartition) -> None: ...

    @abstractmethod
    def resume(self, at: TopicPartition) -> None: ...

    @abstractmethod
    def begin_and_end(self, at: TopicPartition) -> tuple[int, int]: ...

    @abstractmethod
    def offset_for_time(self, at: TopicPartition, timestamp: int) -> int | None:
        """The offset of the first record that is not older; None if there is none."""

    @abstractmethod
    def commit(self, offsets: Mapping[TopicPartition, Committed] | None = None) -> None:
        """Commit these offsets, or by default those of the received records."""

    @abstractmethod
    def committed(self, at: TopicPartition) -> Committed | None: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client(ABC):
    """A client library."""

    name: str
    idle_poll_s: float = 0.05
    """How long to poll when no records are expected."""

    @abstractmethod
    def producer(self, servers: str, options: ProducerOptions = DEFAULT_PRODUCER) -> Producer: ...

    @abstractmethod
    def consumer(self, servers: str, options: ConsumerOptions = DEFAULT_CONSUMER) -> Consumer: ...

    def __repr__(self) -> str:
        return self.name


def by_partition(received: Iterable[Received]) -> dict[TopicPartition, list[Received]]:
    found: dict[TopicPartition, list[Received]] = {}
    for record in received:
        found.setdefault(record.at, []).append(record)
    return found


def values(received: Sequence[Received]) -> list[bytes | None]:
    return [record.value for record in received]
