"""`ottla.Consumer`: the blocking consumer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Generic

from ottla.client.blocking.background import Background
from ottla.client.blocking.options import BlockingConsumerOptions, split
from ottla.client.config import ConsumerConfig
from ottla.client.typing import K, V

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self, Unpack

    import pyarrow as pa

    from ottla.client.consumer.record import ConsumerRecord
    from ottla.client.group.interface import Committed, GroupProgress
    from ottla.client.serializers import Deserializer
    from ottla.core.ids import TopicPartition

_AT_A_TIME: Final = 5_000
"""Waking another thread costs as much as decoding hundreds of records."""


class Consumer(Generic[K, V]):
    """`with ottla.Consumer("localhost:9092", topics=["orders"], group="g") as consumer: for record in consumer: …`.

    Connects when created. Threads that share a consumer get different records.
    """

    def __init__(
        self,
        servers: str | Iterable[str],
        topics: Iterable[str] = (),
        *,
        key_deserializer: Deserializer[K] | None = None,
        value_deserializer: Deserializer[V] | None = None,
        **options: Unpack[BlockingConsumerOptions],
    ) -> None:
        client_options, own = split(options, ConsumerConfig)
        if isinstance(topics, str):
            topics = (topics,)
        self._taking = threading.Lock()
        self._background = Background("consumer", servers, client_options)
        self._background.closes_with(self)
        make = self._background.client.consumer
        try:
            self._consumer = self._background.do(
                lambda: make(*topics, key_deserializer=key_deserializer, value_deserializer=value_deserializer, **own)
            )
            self._background.call(self._consumer.start())
        except BaseException:
            self._background.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit, with auto_commit, leave the group and release the partitions. Idempotent."""
        self._background.close()

    # Records

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """All records, without end."""
        while True:
            with self._taking:
                records = self._background.call(self._consumer.take(_AT_A_TIME))
            yield from records

    def poll(self, max_records: int = 500, timeout_ms: float | None = None) -> list[ConsumerRecord[K, V]]:
        """The available records, at most `max_records`. Blocks for the first one up to the timeout."""
        with self._taking:
            return self._background.call(self._consumer.poll(max_records, timeout_ms))

    def fetch_arrow(self, **limits: Any) -> pa.Table:
        """The fetched records as columns; see the async consumer for the limits."""
        with self._taking:
            return self._background.call(self._consumer.fetch_arrow(**limits))

    # Which partitions

    def subscribe(self, *topics: str) -> None:
        """Subscribe to these topics, replacing the subscription."""
        self._background.call(self._consumer.subscribe(*topics))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these partitions, replacing the assignment."""
        self._background.call(self._consumer.assign(partitions))

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._background.do(lambda: self._consumer.assignment)

    def pause(self, *partitions: TopicPartition) -> None:
        """Pause these partitions, or all."""
        self._background.do(self._consumer.pause, *partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._background.do(self._consumer.resume, *partitions)

    # Positions

    def seek(self, at: TopicPartition, offset: int) -> None:
        """Continue with this offset."""
        self._background.do(self._consumer.seek, at, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Seek these partitions, or all, to the first available record."""
        self._background.do(self._consumer.seek_to_beginning, *partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Seek these partitions, or all, past the last record."""
        self._background.do(self._consumer.seek_to_end, *partitions)

    def position(self, at: TopicPartition) -> int:
        """The offset of the next record to be delivered."""
        return self._background.call(self._consumer.position(at))

    def lag(self, at: TopicPartition) -> int:
        """The lag of this partition."""
        return self._background.call(self._consumer.lag(at))

    def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        return self._background.call(self._consumer.beginning_offsets(*partitions))

    def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        return self._background.call(self._consumer.end_offsets(*partitions))

    def offsets_for_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after each time; None if there is none."""
        return self._background.call(self._consumer.offsets_for_times(times_ms))

    # Commits

    def progress(self, offsets: Mapping[TopicPartition, int] | None = None) -> GroupProgress:
        """The offsets that `commit` would commit, for a producer's transaction."""
        return self._background.do(self._consumer.progress, offsets)

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit these offsets, or everything that was delivered."""
        self._background.call(self._consumer.commit(offsets))

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, Committed]:
        """The group's committed offsets."""
        return self._background.call(self._consumer.committed(*partitions))
