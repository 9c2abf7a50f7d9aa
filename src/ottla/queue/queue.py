"""A queue: pushing, and queue-wide operations."""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ottla.queue.config import QueueConfig
from ottla.queue.consumer import Consumer, ConsumerOptions
from ottla.queue.damage import log_damage
from ottla.queue.encode import body_of, kind_of
from ottla.queue.errors import FailWrite, NotFound, NotReady, QueueError
from ottla.queue.files import overwrite_line, sync_folder
from ottla.queue.folder import check_name, create_folder
from ottla.queue.group_commit import GroupCommit
from ottla.queue.info_files import queue_line
from ottla.queue.locks import Lock
from ottla.queue.part_reader import count_of
from ottla.queue.part_writer import Limits, PartWriter
from ottla.queue.record import HEADER_BYTES
from ottla.queue.removal import remove_parts
from ottla.queue.sealing import note_keys, open_folder
from ottla.queue.tails import mend_tail

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from typing import Self, Unpack

    from ottla.core.clock import Clock
    from ottla.queue.config import QueueOptions
    from ottla.queue.damage import OnDamage
    from ottla.queue.positions import Start

Mode = Literal["read", "read_write"]

_WRITE_BYTES: Final = 1 << 20


class Queue:
    """Opened for writing, by one process at a time, or read-only. Thread-safe."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        mode: Mode = "read_write",
        *,
        clock: Clock | None = None,
        **options: Unpack[QueueOptions],
    ) -> None:
        """The queue `name` in the folder `path`; the name defaults to that of the folder."""
        base = Path(path)
        self.name = check_name("queue", base.resolve().name if name is None else name)
        self.config = QueueConfig(**options)
        self.folder = open_folder(base, self.name, self.config.keys)
        self.mode = mode
        self._monotonic_s = time.monotonic if clock is None else clock.monotonic_s
        self._is_durable = self.config.fsync != "never"
        self._shows_synced_only = self.config.fsync == "push"
        syncs_after = {"push": 1, "batch": self.config.batch_messages, "never": math.inf}
        self._unsynced_messages = syncs_after[self.config.fsync]
        """After this many messages a push waits for a sync."""
        self._appending = threading.Lock()
        self._commits = GroupCommit()
        self._failure = ""
        self._writer: PartWriter | None = None
        self._lock: Lock | None = None
        self._is_closed = False
        if mode == "read_write":
            self._open_to_write()
        elif mode != "read":
            raise ValueError(f"mode must be read or read_write, got {mode!r}")
        elif not self.folder.exists():
            raise NotFound(f"no queue {self.name} in {base}")

    def _open_to_write(self) -> None:
        create_folder(self.folder.base)
        self._lock = Lock(self.folder.lock, f"queue {self.name} in {self.folder.base}")
        try:
            if self.config.keys is not None:
                note_keys(self.folder.info_keys, self.name, self.config.keys, is_durable=self._is_durable)
            written, parts = self.folder.written_part(), self.folder.parts()
            newest = max([*parts, *([] if written is None else [written])], default=None)
            for part in self.folder.parts_with_data()[-1:]:
                # Before the new part exists: consumers leave this one when they see a newer.
                mend_tail(self.folder, part, is_durable=self._is_durable)
            self._begin_part(0 if newest is None else newest + 1)
        except BaseException:
            self.close()
            raise

    # Pushing

    def push(self, message: bytes | str) -> int:
        """Add a message; returns the new right edge of its part. With fsync = "push" it is synced."""
        # Hot path: most pushes need only this compiled call.
        writer = self._writer
        return (writer is not None and writer.offer(message)) or self._push(message)

    def _push(self, message: bytes | str) -> int:
        """The general case: rolling to a new part, and waiting for a sync."""
        body = body_of(message, self.folder.extra_bytes)
        size = HEADER_BYTES + len(body) + self.folder.extra_bytes
        while True:
            with self._appending:
                writer = self._usable()
                if writer.has_room(size, 1):
                    edge = writer.append(kind_of(message), body, is_published=not self._shows_synced_only)
                    number = writer.count_pushed
                    break
            self._roll(writer)
        if number - writer.count_synced >= self._unsynced_messages:
            self._sync(writer, number)
        return edge

    def push_many(self, messages: Iterable[bytes | str]) -> int:
        """Add all of these, in as few writes as possible; returns their number.

        They are synced when this returns, unless fsync is "never". If it fails, the messages from some point on
        are not in the queue.
        """
        count = 0
        for chunk, size in _chunks(messages, self.config.part_bytes, self.folder.extra_bytes):
            while True:
                with self._appending:
                    writer = self._usable()
                    if writer.has_room(size, len(chunk)):
                        writer.append_many(chunk)
                        number = writer.count_pushed
                        if not self._shows_synced_only:
                            writer.publish()
                        break
                self._roll(writer)
            count += len(chunk)
        if count and self._is_durable:
            self._sync(writer, number)
        return count

    def flush(self) -> None:
        """Sync everything that was pushed."""
        with self._appending:
            writer = self._usable()
            number = writer.count_pushed
        self._sync(writer, number)

    def _sync(self, writer: PartWriter, number: int) -> None:
        """Wait until this message of this part is synced."""

        def is_done() -> bool:
            # A finished part was synced as a whole.
            return writer is not self._writer or writer.count_synced >= number

        self._commits.sync(is_done, lambda: self._sync_now(writer))

    def _sync_now(self, writer: PartWriter) -> None:
        with self._appending:
            self._usable()
            right_edge, count = writer.right_edge, writer.count_pushed
        with self._failing():
            writer.sync()
            if self._shows_synced_only:
                # Only now: readers must not see what a power failure could lose.
                writer.publish_to(right_edge, count)
        writer.count_synced = count

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """After a failed sync the state on disk is unknown: a new part is safe, this one is not."""
        try:
            yield
        except FailWrite as failed:
            if self._writer is not None:
                self._writer.is_ended = True
            self._failure = f"queue {self.name} has failed and must be reopened: {failed}"
            raise

    # Parts

    def _usable(self) -> PartWriter:
        writer = self._writer
        if writer is None or self._failure:
            is_or_has = "is closed" if self._is_closed else "is open for reading only"
            raise NotReady(self._failure or f"queue {self.name} {is_or_has}")
        return writer

    def _roll(self, full: PartWriter) -> None:
        """Roll to the next part, unless another thread has done so."""
        with self._commits.no_sync(), self._appending:
            if self._usable() is full:
                self._finish(full)
                self._begin_part(full.part + 1)
                full.close()

    def _finish(self, writer: PartWriter) -> None:
        writer.is_ended = True
        with self._failing():
            if self._is_durable:
                writer.sync()
                writer.count_synced = writer.count_pushed
            writer.publish()
            if self._is_durable:
                writer.sync_all()

    def _begin_part(self, part: int) -> None:
        age_ms = self.config.part_age_ms
        ends_s = math.inf if age_ms is None else self._monotonic_s() + age_ms / 1000
        limits = Limits(self.config.part_bytes, ends_s, self._unsynced_messages)
        writer = PartWriter(self.folder, part, self._appending, limits, self._monotonic_s)
        try:
            if self._is_durable:
                writer.sync_all()
                sync_folder(self.folder.base)
            overwrite_line(self.folder.info_queue, queue_line(self.name, part), is_durable=self._is_durable)
            if self._is_durable:
                sync_folder(self.folder.base)
        except BaseException:
            writer.close()
            raise
        self._writer = writer
        if self.config.remove == "committed":
            remove_parts(self.folder)

    # Queue-wide operations

    def consumer(
        self,
        name: str,
        start: Start = "earliest",
        mode: Mode = "read_write",
        *,
        on_damage: OnDamage = log_damage,
    ) -> Consumer:
        """A consumer with this name, from its committed position; a new one from `start`.

        "earliest" is the first message of the queue; "latest_part" the start of the newest part, as in v_queue.

        Mode "read" leaves no trace, and cannot commit. Corruption is logged, or passed to `on_damage`,
        which may raise `damage.as_error()`: reading continues behind it in both cases.
        """
        if self._is_closed:
            raise NotReady(f"queue {self.name} is closed")
        options = ConsumerOptions(start, mode, self._is_durable, on_damage)
        return Consumer(self.folder, name, options)

    def reader(self, start: Start = "earliest", *, on_damage: OnDamage = log_damage) -> Consumer:
        """Read without a name: no position is stored, and nothing can be committed."""
        if self._is_closed:
            raise NotReady(f"queue {self.name} is closed")
        return Consumer(self.folder, None, ConsumerOptions(start, "read", self._is_durable, on_damage))

    @property
    def has_failed(self) -> bool:
        """Whether it rejects pushes until it is reopened."""
        return bool(self._failure)

    @property
    def part(self) -> int:
        """The part that is written to."""
        return self.folder.newest_part()

    @property
    def count_pushed(self) -> int:
        """The number of messages in the newest part."""
        return count_of(self.folder, self.part)

    def __len__(self) -> int:
        """The number of messages in all parts."""
        return sum(count_of(self.folder, part) for part in self.folder.parts())

    def __bool__(self) -> bool:
        return True

    def consumers(self) -> list[str]:
        """The names of all consumers that have committed."""
        return self.folder.consumers()

    def remove_committed(self) -> list[int]:
        """Remove the parts that every consumer has committed past, regardless of the policy; returns them."""
        with self._appending:
            self._usable()
            return remove_parts(self.folder)

    def close(self) -> None:
        """Syncs everything that was pushed, unless fsync is "never"."""
        with self._commits.no_sync(), self._appending:
            self._is_closed = True
            writer, self._writer = self._writer, None
            lock, self._lock = self._lock, None
            try:
                if writer is not None and not self._failure:
                    self._finish(writer)
            finally:
                if writer is not None:
                    writer.close()
                if lock is not None:
                    lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # `Queue("jobs").push(…)` keeps no reference to close. A partially constructed object lacks attributes.
        with suppress(QueueError, AttributeError):
            self.close()


def _chunks(
    messages: Iterable[bytes | str], part_bytes: int, extra_bytes: int
) -> Iterator[tuple[list[tuple[int, bytes]], int]]:
    """The messages of one write, and their size."""
    limit = min(_WRITE_BYTES, part_bytes)
    chunk: list[tuple[int, bytes]] = []
    size = 0
    for message in messages:
        body = body_of(message, extra_bytes)
        record_bytes = HEADER_BYTES + len(body) + extra_bytes
        if chunk and size + record_bytes > limit:
            yield chunk, size
            chunk, size = [], 0
        chunk.append((kind_of(message), body))
        size += record_bytes
    if chunk:
        yield chunk, size
