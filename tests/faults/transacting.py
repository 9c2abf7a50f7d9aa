"""Random transactions of several producers with faults, and their known outcomes for the checker."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from tests.broker.raw_client import HungUpError, RawClient
from tests.broker.transacting import NEW, Transactional

from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    import random

    from tests.clients.processes import Server

DATA: Final = "data"
SOURCE: Final = "source"
PARTITIONS: Final = 3
_LOST: Final = (HungUpError, OSError)
_PATIENT_MS: Final = 60_000
_HASTY_MS: Final = 30


class Fate(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    GONE = "gone"
    UNKNOWN = "unknown"
    """A commit without a response: its outcome is unknown."""


@dataclass
class Story:
    """One transaction."""

    worker: str
    number: int
    fate: Fate = Fate.OPEN
    written: dict[int, list[bytes]] = field(default_factory=dict)
    """Acknowledged values by partition."""
    moved_to: int | None = None
    """The offset to which it moves its group."""

    def next_value(self) -> bytes:
        count = sum(map(len, self.written.values()))
        return f"{self.worker}:{self.number}:{count}".encode()


class Worker:
    """A transactional id and its producer, which is sometimes replaced without its knowledge."""

    def __init__(self, server: Server, name: str, flow: str, pick: random.Random) -> None:
        self.name = name
        self.stories: list[Story] = []
        self._server = server
        self._flow = flow
        self._pick = pick
        self._client: RawClient | None = None
        self._producer: Transactional | None = None
        self._story: Story | None = None

    def step(self) -> None:
        """Do one step; a lost connection is reopened by the next step."""
        try:
            self._step()
        except _LOST:
            self.hang_up()

    def hang_up(self) -> None:
        """Close the connection: the broker is gone, or its responses are ignored."""
        if self._client is not None:
            self._client.close()
        self._client = self._producer = None

    def _step(self) -> None:
        producer = self._started()
        if self._story is None:
            self._story = Story(self.name, len(self.stories))
            self.stories.append(self._story)
        choice = self._pick.random()
        if not self._story.written or choice < 0.5:
            self._write(producer, self._story)
        elif choice < 0.6 and self._story.moved_to is None:
            self._move(producer, self._story)
        elif choice < 0.9:
            self._end(producer, self._story, is_commit=self._pick.random() < 0.7)
        else:
            self._take_over(producer)

    def _started(self) -> Transactional:
        if self._producer is None:
            self._client = RawClient(self._server.address)
            # A restarted producer finds its open transaction aborted, if it was not decided already.
            timeout_ms = _HASTY_MS if self._pick.random() < 0.1 else _PATIENT_MS
            self._producer = Transactional(self._client, self.name, self._flow, timeout_ms)
            self._give_up()
        return self._producer

    def _give_up(self) -> None:
        if self._story is not None and self._story.fate is Fate.OPEN:
            self._story.fate = Fate.GONE
        self._story = None

    def _write(self, producer: Transactional, story: Story) -> None:
        partition = self._pick.randrange(PARTITIONS)
        value = story.next_value()
        is_added = producer.flow == NEW or producer.add(DATA, partition) == ErrorCode.NONE
        if not is_added or producer.send(DATA, value, partition=partition) != ErrorCode.NONE:
            self._fenced()
        else:
            story.written.setdefault(partition, []).append(value)

    def _move(self, producer: Transactional, story: Story) -> None:
        is_added = producer.flow == NEW or producer.add_group(self.name) == ErrorCode.NONE
        if not is_added or producer.send_offset(self.name, SOURCE, story.number + 1) != ErrorCode.NONE:
            self._fenced()
        else:
            story.moved_to = story.number + 1

    def _end(self, producer: Transactional, story: Story, *, is_commit: bool) -> None:
        # Until it is answered.
        story.fate = Fate.UNKNOWN if is_commit else Fate.GONE
        if producer.end(is_commit=is_commit) == ErrorCode.NONE:
            story.fate = Fate.COMMITTED if is_commit else Fate.GONE
            self._story = None
        else:
            story.fate = Fate.GONE
            self._fenced()

    def _fenced(self) -> None:
        """The transaction timed out, and its coordinator has aborted it."""
        self.hang_up()

    def _take_over(self, zombie: Transactional) -> None:
        self._producer = Transactional(zombie.client, self.name, self._flow, _PATIENT_MS)
        self._give_up()
        assert zombie.send(DATA, b"of a zombie") != ErrorCode.NONE
        assert zombie.end(is_commit=True) != ErrorCode.NONE

    def settle(self) -> None:
        """End the open transaction, if any."""
        self.hang_up()
        self._started()
        self.hang_up()

    def commit_unheard(self, server: Server) -> None:
        """Request a commit, and kill the broker before the response is read."""
        from ottla.wire.messages.end_txn import EndTxnRequest

        story, producer = self._story, self._producer
        if story is not None and producer is not None and story.written and self._client is not None:
            story.fate = Fate.UNKNOWN
            request = EndTxnRequest(
                transactional_id=self.name,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                committed=True,
            )
            self._client.send(request, 5 if self._flow == NEW else 3)
        server.restart("kill")
