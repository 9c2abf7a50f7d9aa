"""The served queues: their writers, and the last messages returned to each consumer.

Everything here blocks, and is called in threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.queue import NotFound, Position, Queue, QueueError, list_queues
from ottla.queue.folder import QueueFolder, check_name
from ottla.queue.removal import delete_queue

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.core.keys import KeyRing
    from ottla.http.queues.config import QueuesConfig
    from ottla.queue import Consumer, Message
    from ottla.queue.config import QueueOptions
    from ottla.queue.positions import Start

_MAX_REMEMBERED: Final = 10_000
"""The maximum number of tracked consumers. A dropped consumer gets its messages again."""


class QueueState(NamedTuple):
    name: str
    part: int
    count_pushed: int
    is_ready: bool


class Pushed(NamedTuple):
    part: int
    messages: int


class QueueStore:
    def __init__(self, base: Path, options: QueueOptions) -> None:
        self._base = base
        self._options = options
        self._opening = threading.Lock()
        self._writers: dict[str, Queue] = {}
        self._remembering = threading.Lock()
        self._given: OrderedDict[tuple[str, str], Position] = OrderedDict()

    def close(self) -> None:
        with self._opening:
            for writer in self._writers.values():
                with suppress(QueueError):
                    writer.close()
            self._writers.clear()

    # Queues

    def names(self) -> list[str]:
        return list_queues(self._base)

    def state(self, name: str) -> QueueState:
        with self._read(name) as queue:
            writer = self._writers.get(name)
            is_ready = writer is None or not writer.has_failed
            return QueueState(name, queue.part, queue.count_pushed, is_ready)

    def create(self, name: str) -> None:
        check_name("queue", name)
        with self._opening:
            if QueueFolder(self._base, name).exists():
                raise AlreadyExists(f"queue {name} already exists")
            self._writers[name] = Queue(self._base, name, **self._options)

    def delete(self, name: str) -> None:
        check_name("queue", name)
        with self._opening:
            writer = self._writers.pop(name, None)
            if writer is not None:
                with suppress(QueueError):
                    writer.close()
            delete_queue(self._base, name)
            with self._remembering:
                for key in [key for key in self._given if key[0] == name]:
                    del self._given[key]

    def push(self, name: str, messages: list[bytes | str]) -> Pushed:
        queue = self._writer(name)
        count = queue.push_many(messages)
        return Pushed(queue.part, count)

    def _writer(self, name: str) -> Queue:
        check_name("queue", name)
        with self._opening:
            writer = self._writers.get(name)
            if writer is not None and writer.has_failed:
                # The writer has reported the data that it could not sync; a new part is safe to write to.
                del self._writers[name]
                writer.close()
                writer = None
            if writer is None:
                if not QueueFolder(self._base, name).exists():
                    raise NotFound(f"no queue {name}")
                writer = self._writers[name] = Queue(self._base, name, **self._options)
            return writer

    def _read(self, name: str) -> Queue:
        options = self._options
        return Queue(self._base, name, "read", fsync=options.get("fsync", "push"), keys=options.get("keys"))

    # Consumers

    def consumers(self, name: str) -> list[str]:
        with self._read(name) as queue:
            return queue.consumers()

    def open_consumer(self, name: str, consumer: str, start: Start) -> Consumer:
        """Open a consumer at its committed position, regardless of what was returned since."""
        with self._read(name) as queue:
            return queue.consumer(consumer, start)

    def give(self, name: str, consumer: Consumer, count: int, max_bytes: int) -> list[Message]:
        """Return up to this many messages and bytes, but at least one message."""
        messages: list[Message] = []
        size = 0
        while len(messages) < count and size < max_bytes:
            message = consumer.pop()
            if message is None:
                break
            messages.append(message)
            size += len(message.body)
        self._remember(name, consumer)
        return messages

    def commit(self, name: str, consumer: str) -> None:
        """Commit the messages that were returned last, if any."""
        with self._read(name) as queue:
            if consumer not in queue.consumers():
                raise NotFound(f"queue {name} has no consumer {consumer}")
            with self._remembering:
                position = self._given.pop((name, consumer), None)
            if position is not None:
                with queue.consumer(consumer) as opened:
                    opened.commit(position)

    def commit_behind(self, name: str, consumer: str, part: int, offset: int) -> None:
        """Commit up to the message at this position. Never moves back: a late request has no effect."""
        with self._read(name) as queue:
            if consumer not in queue.consumers():
                raise NotFound(f"queue {name} has no consumer {consumer}")
            with queue.consumer(consumer) as opened:
                committed = opened.position
                if (part, offset) < (committed.part, committed.offset):
                    return
                opened.seek(Position(part, offset, 0))
                if opened.pop() is None:
                    raise NotFound(f"queue {name} has no message at byte {offset} of part {part}")
                opened.commit()

    def _remember(self, name: str, consumer: Consumer) -> None:
        key = (name, consumer.name)
        with self._remembering:
            self._given[key] = consumer.position
            self._given.move_to_end(key)
            while len(self._given) > _MAX_REMEMBERED:
                self._given.popitem(last=False)


class AlreadyExists(Exception):
    """A queue of this name exists."""


def open_store(config: QueuesConfig, keys: KeyRing | None = None) -> QueueStore:
    options: QueueOptions = {
        "fsync": config.fsync,
        "part_bytes": config.part_bytes,
        "remove": config.remove,
        "keys": keys,
    }
    return QueueStore(config.data_directory, options)
