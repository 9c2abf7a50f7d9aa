"""A worker's connection to the catalog of its supervisor.

Each worker has one and never reopens it: without it either the supervisor has died, or this worker must stop.
"""

from __future__ import annotations

import itertools
import socket
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.cluster.builtin.messages import (
    LENGTH_BYTES,
    Answer,
    Changed,
    Commit,
    ConflictAt,
    Done,
    Failed,
    Found,
    ListChildren,
    Listed,
    ReadNode,
    ServerMessage,
    WatchNode,
    Welcome,
    framed,
    pack,
    read_server_message,
)
from ottla.cluster.builtin.tree import Aspect, Event
from ottla.cluster.operations import Conflict, Disconnected
from ottla.cluster.store import Session
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.cluster.builtin.messages import Request
    from ottla.cluster.operations import Node, Operation
    from ottla.cluster.store import OnChildren, OnFailure, OnNode, OnWatched

_LOST: Final = "lost the connection to the supervisor"
_NO_SESSION: Final = 0
_PATIENCE_S: Final = 30.0


def connect_to(path: str) -> CatalogLink:
    """A connection to the catalog that is served at this socket file."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError as refused:
        connection.close()
        raise ConfigError(f"{path}: {refused.strerror}; nodes end with their `ottla cluster local`") from None
    return CatalogLink(connection, _PATIENCE_S)


class CatalogLink:
    """See `cluster.store.Store` for the contract of each method."""

    def __init__(self, connection: socket.socket, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.session_id = _NO_SESSION
        self.is_connected = False
        self._connection = connection
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Callable[[Answer | None], None]] = {}
        self._watches: dict[Event, set[OnWatched]] = {}
        self._listeners: list[Callable[[Session], None]] = []
        self._is_closed = False
        self._welcomed = threading.Event()
        # Held while a request is numbered and sent: responses come in this order.
        self._asking = threading.Lock()
        self._reader = threading.Thread(target=self._read_all, name="ottla-catalog", daemon=True)

    def open(self) -> None:
        self._reader.start()
        if not self._welcomed.wait(self.timeout_s) or not self.is_connected:
            self.close()
            raise ConfigError("the supervisor does not respond")

    def close(self) -> None:
        self._is_closed = True
        with suppress(OSError):
            # close() alone would leave the reader waiting.
            self._connection.shutdown(socket.SHUT_RDWR)
        if self._reader.ident is not None and self._reader is not threading.current_thread():
            self._reader.join()
        self._connection.close()

    def listen(self, listener: Callable[[Session], None]) -> None:
        self._listeners.append(listener)

    # Requests

    def look(self, path: str, found: OnNode, failed: OnFailure, watch: OnWatched | None = None) -> None:
        def answered(answer: Answer | None) -> None:
            if not isinstance(answer, Found):
                failed()
                return
            if watch is not None and answer.node is not None:
                self._watch(Aspect.ITSELF, path, watch)
            found(answer.node)

        self._ask(lambda number: ReadNode(number, path, watch is not None), answered)

    def look_out(self, path: str, found: Callable[[bool], None], failed: OnFailure, watch: OnWatched) -> None:
        def answered(answer: Answer | None) -> None:
            if not isinstance(answer, Found):
                failed()
                return
            self._watch(Aspect.ITSELF, path, watch)
            found(answer.node is not None)

        self._ask(lambda number: WatchNode(number, path), answered)

    def list(self, path: str, found: OnChildren, failed: OnFailure, watch: OnWatched) -> None:
        def answered(answer: Answer | None) -> None:
            if not isinstance(answer, Listed):
                failed()
                return
            if answer.names is not None:
                self._watch(Aspect.CHILDREN, path, watch)
            found(answer.names)

        self._ask(lambda number: ListChildren(number, path), answered)

    def read(self, path: str) -> Node | None:
        answer = self._wait_for(lambda number: ReadNode(number, path, is_watched=False))
        if isinstance(answer, Found):
            return answer.node
        raise Disconnected(_LOST)

    def commit(self, operations: Sequence[Operation]) -> None:
        match self._wait_for(lambda number: Commit(number, pack(operations))):
            case Done():
                return
            case ConflictAt(index=index):
                raise Conflict(index, operations[index])
            case Failed(why=why):
                raise Disconnected(why)
            case _:
                raise Disconnected(_LOST)

    def _wait_for(self, question: Callable[[int], Request]) -> Answer | None:
        result: Future[Answer | None] = Future()
        self._ask(question, result.set_result)
        try:
            return result.result(self.timeout_s)
        except NoAnswer:
            raise Disconnected("the supervisor did not respond in time") from None

    def _ask(self, question: Callable[[int], Request], answered: Callable[[Answer | None], None]) -> None:
        """Send a request; `answered` is called with None if no response will come."""
        with self._asking:
            number = next(self._numbers)
            self._waiting[number] = answered
            try:
                if self.is_connected:
                    self._connection.sendall(framed(question(number)))
                    return
            except OSError:
                # The reader notices this, and fails all pending requests.
                return
        if self._waiting.pop(number, None) is not None:
            answered(None)

    def _watch(self, aspect: Aspect, path: str, watch: OnWatched) -> None:
        """Register a watch; duplicates are notified once. Runs in the reader's thread, as does all access to
        watches.
        """
        self._watches.setdefault(Event(aspect, path), set()).add(watch)

    # In the reader's thread

    def _read_all(self) -> None:
        with self._connection.makefile("rb") as stream, suppress(OSError, msgspec.DecodeError):
            while head := stream.read(LENGTH_BYTES):
                self._told(read_server_message(stream.read(int.from_bytes(head))))
        with self._asking:
            self.is_connected = False
            waiting, self._waiting = self._waiting, {}
        self._welcomed.set()
        for answered in waiting.values():
            answered(None)
        if not self._is_closed:
            for listener in self._listeners:
                listener(Session.LOST)

    def _told(self, message: ServerMessage) -> None:
        match message:
            case Welcome():
                self.session_id = message.session_id
                self.is_connected = True
                self._welcomed.set()
            case Changed():
                for watch in self._watches.pop(Event(message.aspect, message.path), ()):
                    watch(message.path)
            case _:
                self._waiting.pop(message.id)(message)
