"""The queues with records to deliver, in turn."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ottla.client.errors import SerializationFailed, broker_error
from ottla.client.serializers import NotReady
from ottla.core.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.consumer.partition_queue import PartitionQueue
    from ottla.client.errors import ClientError
    from ottla.records.reader import Record


class ReadyQueues:
    """A queue goes to the end of the line after each turn, so that a busy one does not starve others."""

    def __init__(self, on_room: Callable[[PartitionQueue], None]) -> None:
        self._line: deque[PartitionQueue] = deque()
        self._on_room = on_room

    def __bool__(self) -> bool:
        return self.first() is not None

    def add(self, queue: PartitionQueue) -> None:
        if queue.has_records and not queue.is_listed:
            queue.is_listed = True
            self._line.append(queue)

    def take(self, count: int) -> list[Record]:
        """At most `count` records of as many queues as needed.

        An error of a queue is raised if no records came before it, and removes the queue from the line. NotReady of
        a deserializer does not.
        """
        records: list[Record] = []
        while count > len(records) and (queue := self.first()) is not None:
            try:
                taken = queue.take(count - len(records))
            except Exception as error:
                if records:
                    break
                if isinstance(error, NotReady):
                    raise
                raise failed(queue, error) from error
            if records:
                records += taken
            else:
                records = taken
            self.served(queue)
        return records

    def served(self, queue: PartitionQueue) -> None:
        """Move the first queue, which was served, to the end."""
        self._line.rotate(-1)
        if queue.has_room:
            self._on_room(queue)

    def first(self) -> PartitionQueue | None:
        while self._line:
            if self._line[0].has_records:
                return self._line[0]
            self._line.popleft().is_listed = False
        return None


def failed(queue: PartitionQueue, error: Exception) -> ClientError:
    """The error for a record that cannot be delivered; its partition stays there until a seek.

    After a retriable error, such as an unreachable schema registry, the next call tries again.
    """
    if getattr(error, "is_retriable", False):
        return SerializationFailed(f"{queue.at} at offset {queue.position}: {error}; the next call tries again")
    queue.fail()
    about = f"{queue.at} at offset {queue.position}"
    if isinstance(error, ApiError):
        return broker_error(error.code, about, f"{error}; seek past it to continue")
    return SerializationFailed(f"{about}: the deserializer failed with {error!r}; seek past it to continue")
