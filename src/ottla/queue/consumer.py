"""A named consumer of a queue, with a stored position."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ottla.queue.damage import missing_part
from ottla.queue.errors import NotFound, NotReady, QueueError
from ottla.queue.files import replace
from ottla.queue.folder import check_name
from ottla.queue.info_files import PopInfo, pop_line
from ottla.queue.locks import Lock
from ottla.queue.part_reader import PartReader, Place, count_of
from ottla.queue.positions import Position, Start, committed_position, first_position, place_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from ottla.queue.damage import OnDamage
    from ottla.queue.folder import QueueFolder
    from ottla.queue.record import Message

_FIRST_PAUSE_S: Final = 0.001
_LONGEST_PAUSE_S: Final = 0.05


class ConsumerOptions(NamedTuple):
    start: Start
    mode: Literal["read", "read_write"]
    is_durable: bool
    """Whether commits are synced."""
    on_damage: OnDamage


class Consumer:
    """Created by `Queue.consumer`. Not thread-safe."""

    def __init__(self, folder: QueueFolder, name: str | None, options: ConsumerOptions) -> None:
        self.name = "" if name is None else check_name("consumer", name)
        self._folder = folder
        self._options = options
        self._reader: PartReader | None = None
        self._lock: Lock | None = None
        self._is_closed = False
        self._position = Position(0, 0, 0)
        self._last: Message | None = None
        self._ready: Iterator[Message] = iter(())
        if options.mode == "read_write":
            self._lock = Lock(folder.consumer_lock(self.name), f"consumer {self.name} of queue {folder.name}")
        try:
            self._go_to(self._first())
        except BaseException:
            self.close()
            raise

    def _first(self) -> Position:
        if not self.name:
            return first_position(self._folder, self._options.start)
        if self._folder.info_pop(self.name).exists():
            return committed_position(self._folder, self.name)
        if self._lock is None:
            raise NotFound(f"queue {self._folder.name} has no consumer {self.name}")
        first = first_position(self._folder, self._options.start)
        self._write(first)
        return first

    # Reading

    def pop(self, timeout_ms: float = 0) -> Message | None:
        """The next message, waiting up to the timeout; None if none arrives."""
        # Hot path: messages read together were decoded together.
        for message in self._ready:
            self._last = message
            return message
        messages = self.pop_many(1, timeout_ms)
        return messages[0] if messages else None

    def pop_many(self, count: int, timeout_ms: float = 0) -> list[Message]:
        """Up to `count` messages, waiting if there are none; fewer as soon as there are any."""
        self._check_open()
        messages = self._take(count)
        while len(messages) < count and self._fill(may_skip=not messages):
            messages += self._take(count - len(messages))
        if messages or count < 1 or timeout_ms <= 0:
            return messages
        return self._wait_for_many(count, time.monotonic() + timeout_ms / 1000)

    def _take(self, count: int) -> list[Message]:
        """Up to `count` messages that were already read."""
        messages = list(islice(self._ready, max(count, 0)))
        if messages:
            self._last = messages[-1]
        return messages

    def _wait_for_many(self, count: int, deadline_s: float) -> list[Message]:
        pause_s = _FIRST_PAUSE_S
        while (left_s := deadline_s - time.monotonic()) > 0:
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            if messages := self.pop_many(count):
                return messages
        return []

    def __iter__(self) -> Iterator[Message]:
        """All messages available now. Iterating again continues from there."""
        while (message := self.pop()) is not None:
            yield message

    # Position

    @property
    def position(self) -> Position:
        """The position of the next message."""
        if self._last is not None:
            return Position(self._last.part, self._last.end, self._last.number)
        return self._position

    def commit(self, position: Position | None = None) -> None:
        """Store the position after the last popped message, or another: this consumer resumes there."""
        self._check_open()
        if self._lock is None:
            raise NotReady(f"consumer {self.name} of queue {self._folder.name} is open for reading only")
        self._write(position or self.position)

    def seek(self, to: Position | Start | Literal["end"]) -> None:
        """Continue at another position; does not commit."""
        self._check_open()
        if to == "end":
            newest = self._folder.newest_part()
            to = Position(newest, *self._end_of(newest))
        elif isinstance(to, str):
            to = first_position(self._folder, to)
        else:
            place = place_at(self._folder, to.part, to.offset)
            if place is None:
                raise NotFound(f"no message starts at byte {to.offset} of part {to.part} of queue {self._folder.name}")
            to = Position(to.part, *place)
        self._go_to(to)

    @property
    def lag(self) -> int:
        """The number of unread messages."""
        self._check_open()
        part, _, number = self.position
        later = sum(count_of(self._folder, other) for other in self._folder.parts() if other > part)
        return max(count_of(self._folder, part) - number, 0) + later

    # Closing

    def close(self) -> None:
        """Does not commit."""
        self._is_closed = True
        self._ready = iter(())
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._lock is not None:
            self._lock.release(remove=True)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # As for a queue: the lock must not outlive it. A partially constructed object lacks attributes.
        with suppress(QueueError, AttributeError):
            self.close()

    # Implementation

    def _go_to(self, position: Position) -> None:
        self._position = position
        self._last = None
        self._ready = iter(())
        if self._reader is not None and self._reader.part != position.part:
            self._reader.close()
            self._reader = None

    def _fill(self, *, may_skip: bool) -> bool:
        """Read on, into later parts and past corrupt data; whether there are messages now.

        With messages pending it must not skip: reporting corruption may raise.
        """
        while True:
            part, *at = self.position
            place = Place(*at)
            reader = self._open(part)
            if reader is None or place.offset >= reader.info.right_edge:
                # Read before the end is: a part that is no longer the newest gets no more messages.
                newest = self._folder.newest_part()
                if reader is not None:
                    reader.refresh(place)
                if reader is None or place.offset >= reader.info.right_edge:
                    if not self._hop(part if reader is None else part + 1, newest, may_skip=may_skip):
                        return False
                    continue
            if messages := reader.read(place):
                self._ready = iter(messages)
                return True
            if not may_skip:
                return False
            damage, after = reader.skip(place)
            self._go_to(Position(part, *after))
            self._options.on_damage(damage)

    def _open(self, part: int) -> PartReader | None:
        if self._reader is None or self._reader.part != part:
            self._go_to(self.position)
            try:
                self._reader = PartReader(self._folder, part)
            except NotFound:
                return None
        return self._reader

    def _hop(self, wanted: int, newest: int, *, may_skip: bool) -> bool:
        """Move to this part, or to the next existing one; whether there is one."""
        later = [part for part in self._folder.parts_with_data() if part >= wanted] if newest >= wanted else []
        if not later or (later[0] != wanted and not may_skip):
            return False
        self._go_to(Position(later[0], 0, 0))
        if later[0] != wanted:
            self._options.on_damage(missing_part(self._folder.name, wanted, later[0]))
        return True

    def _end_of(self, part: int) -> Place:
        with PartReader(self._folder, part) as reader:
            reader.refresh(Place(0, 0))
            return Place(*reader.info)

    def _write(self, position: Position) -> None:
        info = PopInfo(position.offset, position.number, position.part)
        line = pop_line(self._folder.name, self.name, info)
        replace(self._folder.info_pop(self.name), line, is_durable=self._options.is_durable)

    def _check_open(self) -> None:
        if self._is_closed:
            raise NotReady(f"consumer {self.name} of queue {self._folder.name} is closed")
