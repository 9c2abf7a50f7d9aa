"""Serves the workers' catalog, in the supervisor's event loop.

A session is a connection: it ends when either process closes it or dies, and the kernel reports that at once, so
session timeouts are not needed.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

from ottla.cluster.builtin.file import CatalogFile
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
    WatchNode,
    Welcome,
    framed,
    read_request,
    unpack,
)
from ottla.cluster.builtin.tree import Aspect, Event, Tree
from ottla.cluster.operations import Conflict, Delete
from ottla.core.errors import StorageError

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from ottla.cluster.builtin.messages import Request, ServerMessage
    from ottla.cluster.builtin.tree import Changes


class Keeper:
    def __init__(self, folder: Path) -> None:
        """The caller holds the lock on the folder; raises DataDirError if its catalog is unusable."""
        self._file = CatalogFile(folder)
        self.tree = Tree(self._file.read(), self._file.first_change)
        self._session_ids = itertools.count(self._file.first_change + 1)
        self._watchers: defaultdict[Event, set[_Session]] = defaultdict(set)

    async def serve(self, connection: socket.socket) -> None:
        """Serve the connection of one worker."""
        reader, writer = await asyncio.open_connection(sock=connection)
        session = _Session(next(self._session_ids), writer)
        session.tell(Welcome(session.id))
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(LENGTH_BYTES))
                request = read_request(await reader.readexactly(length))
                session.tell(self._answer(request, session))
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            self._end(session)
            writer.close()

    def close(self) -> None:
        self._file.close()

    def _answer(self, request: Request, session: _Session) -> Answer:
        match request:
            case ReadNode():
                node = self.tree.get(request.path)
                if request.is_watched and node is not None:
                    self._watch(Aspect.ITSELF, request.path, session)
                return Found(request.id, node)
            case WatchNode():
                self._watch(Aspect.ITSELF, request.path, session)
                return Found(request.id, self.tree.get(request.path))
            case ListChildren():
                names = self.tree.children(request.path)
                if names is not None:
                    self._watch(Aspect.CHILDREN, request.path, session)
                return Listed(request.id, names)
            case Commit():
                return self._commit(request, session)

    def _commit(self, request: Commit, session: _Session) -> Answer:
        try:
            changes = self.tree.plan(unpack(request.operations), session.id)
            # Made durable first: a crash must not undo a change that a client has seen.
            self._file.write(changes)
        except Conflict as conflict:
            return ConflictAt(request.id, conflict.index)
        except StorageError as refused:
            return Failed(request.id, str(refused))
        self._apply(changes)
        return Done(request.id)

    def _apply(self, changes: Changes) -> None:
        for event in self.tree.apply(changes):
            for session in self._watchers.pop(event, ()):
                session.tell(Changed(event.aspect, event.path))

    def _watch(self, aspect: Aspect, path: str, session: _Session) -> None:
        self._watchers[Event(aspect, path)].add(session)

    def _end(self, session: _Session) -> None:
        for watching in self._watchers.values():
            watching.discard(session)
        owned = self.tree.owned_by(session.id)
        self._apply(self.tree.plan([Delete(path) for path in owned], session.id))


class _Session:
    def __init__(self, session_id: int, writer: asyncio.StreamWriter) -> None:
        self.id = session_id
        self._writer = writer

    def tell(self, message: ServerMessage) -> None:
        # The end of a session may be noticed later than the notification is sent.
        if not self._writer.is_closing():
            self._writer.write(framed(message))
