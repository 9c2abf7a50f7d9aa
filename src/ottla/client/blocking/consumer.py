"""`ottla.Consumer`: reads without an event loop of the caller's."""

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
"""To wake another thread costs as much as to decode hundreds of records."""


class Consumer(Generic[K, V]):
    """`with ottla.Consumer("localhost:9092", topics=["orders"], group="g") as consumer: for record in consumer: …`.

    Connects when it is made. Threads that share one get different records.
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
        """Commit, if that is automatic, leave the group and give up the partitions. May be called again."""
        self._background.close()

    # Records

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """All records, one after the other, for ever."""
        while True:
            with self._taking:
                records = self._background.call(self._consumer.take(_AT_A_TIME))
            yield from records

    def poll(self, max_records: int = 500, timeout_ms: float | None = None) -> list[ConsumerRecord[K, V]]:
        """The records that are here, at most so many. Blocks for the first one, as long as the timeout allows."""
        with self._taking:
            return self._background.call(self._consumer.poll(max_records, timeout_ms))

    def fetch_arrow(self, **limits: Any) -> pa.Table:  # noqa: ANN401
        """What has been fetched, as columns; see the async consumer for the limits."""
        with self._taking:
            return self._background.call(self._consumer.fetch_arrow(**limits))

    # Which partitions

    def subscribe(self, *topics: str) -> None:
        """Read these topics from now on, and no others."""
        self._background.call(self._consumer.subscribe(*topics))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions from now on, and no others."""
        self._background.call(self._consumer.assign(partitions))

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._background.do(lambda: self._consumer.assignment)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these partitions, or of any."""
        self._background.do(self._consumer.pause, *partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._background.do(self._consumer.resume, *partitions)

    # Positions

    def seek(self, at: TopicPartition, offset: int) -> None:
        """The next record of this partition is the one at this offset."""
        self._background.do(self._consumer.seek, at, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """To the first record there is, of these partitions or all."""
        self._background.do(self._consumer.seek_to_beginning, *partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Past the last record there is, of these partitions or all."""
        self._background.do(self._consumer.seek_to_end, *partitions)

    def position(self, at: TopicPartition) -> int:
        """The offset of the next record to be handed out."""
        return self._background.call(self._consumer.position(at))

    def lag(self, at: TopicPartition) -> int:
        """How many records of this partition are still to be handed out."""
        return self._background.call(self._consumer.lag(at))

    def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        return self._background.call(self._consumer.beginning_offsets(*partitions))

    def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        return self._background.call(self._consumer.end_offsets(*partitions))

    def offsets_for_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after each time; None where there is none so late."""
        return self._background.call(self._consumer.offsets_for_times(times_ms))

    # Commits

    def progress(self, offsets: Mapping[TopicPartition, int] | None = None) -> GroupProgress:
        """What `commit` would tell the group, for a producer to send with its transaction instead."""
        return self._background.do(self._consumer.progress, offsets)

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Remember for the group how far it has read: these offsets, or all that was handed out."""
        self._background.call(self._consumer.commit(offsets))

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, Committed]:
        """How far the group has read."""
        return self._background.call(self._consumer.committed(*partitions))
