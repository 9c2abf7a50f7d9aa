"""Writes in one turn of the event loop are joined."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.http.framework.joined_writes import JoinedWrites

if TYPE_CHECKING:
    from collections.abc import Callable


class Sink(asyncio.Transport):
    """A transport that records writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_over = False

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        self.written.append(data)

    def close(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True

    def is_closing(self) -> bool:
        return self.is_over


class Turns:
    """The callbacks for the next turn of the loop."""

    def __init__(self) -> None:
        self._due: list[Callable[[], None]] = []

    def call_soon(self, work: Callable[[], None]) -> None:
        self._due.append(work)

    def turn(self) -> None:
        due, self._due = self._due, []
        for work in due:
            work()


def joined() -> tuple[JoinedWrites, Sink, Turns]:
    sink, turns = Sink(), Turns()
    return JoinedWrites(sink, turns.call_soon), sink, turns


def test_writes_of_a_turn_are_one_write() -> None:
    transport, sink, turns = joined()
    transport.write(b"head ")
    transport.write(b"body")
    assert sink.written == []
    turns.turn()
    transport.write(b"next")
    turns.turn()
    assert sink.written == [b"head body", b"next"]


def test_more_than_a_buffer_is_written_at_once() -> None:
    transport, sink, turns = joined()
    transport.write(b"head")
    transport.write(b"x" * 70_000)
    assert sink.written == [b"head" + b"x" * 70_000]
    turns.turn()
    assert len(sink.written) == 1


def test_a_close_flushes_and_an_abort_does_not() -> None:
    transport, sink, turns = joined()
    transport.write(b"last words")
    transport.close()
    turns.turn()
    assert (sink.written, transport.is_closing()) == ([b"last words"], True)
    transport, sink, turns = joined()
    transport.write(b"nothing")
    transport.abort()
    turns.turn()
    assert (sink.written, transport.is_closing()) == ([], True)


def test_nothing_is_sent_once_the_connection_is_gone() -> None:
    transport, sink, turns = joined()
    transport.write(b"too late")
    sink.close()
    turns.turn()
    assert sink.written == []
