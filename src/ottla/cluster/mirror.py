"""A copy of the nodes in ZooKeeper, kept current by watches, so that no request has to read ZooKeeper.

A watch fires once, and only says that something changed: the node is read again, with a new watch. All results arrive
in one thread, in the order of ZooKeeper's responses, so the copy never goes back. After a reconnect, everything is read
again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from ottla.cluster.operations import Disconnected, Node
from ottla.cluster.store import Session, Store

OnChanges: TypeAlias = Callable[[Mapping[str, Node | None]], None]
"""The differences: created and changed nodes, and None for deleted ones."""

_MOST_AT_ONCE: Final = 2_000


class Mirror:
    def __init__(self, store: Store, folders: Collection[str], leaves: Collection[str], nested: str) -> None:
        """A copy of the children of `folders`, of the nodes `leaves`, and of the grandchildren of `nested`."""
        self.nodes: dict[str, Node] = {}
        self._store = store
        self._folders = dict.fromkeys(folders)
        self._leaves = leaves
        self._nested = nested
        self._topics_listed: set[str] = set()
        self._looking: set[str] = set()
        self._changed: dict[str, Node | None] = {}
        self._listeners: list[OnChanges] = []
        self._waiting: list[threading.Event] = []
        self._is_whole = threading.Event()
        # Held while a request is sent, so that responses come in the order of their callbacks; and while one is
        # counted.
        self._lock = threading.RLock()
        self._open_questions = 0
        self._round = 0
        self._is_broken = False
        store.listen(self._session_changed)

    def listen(self, listener: OnChanges) -> None:
        """Register a listener, which is called in one thread and must not block on ZooKeeper."""
        self._listeners.append(listener)

    def fill(self, timeout_s: float) -> None:
        """Read everything, and wait for it."""
        self._read_all()
        self.wait_until_whole(timeout_s)

    def wait_until_whole(self, timeout_s: float) -> None:
        """Wait until everything has been read again after a reconnect."""
        if not self._is_whole.wait(timeout_s):
            raise Disconnected("timeout while reading the catalog")

    def refresh(self, paths: Collection[str], timeout_s: float) -> None:
        """Wait until the copy of these nodes is at least as new as this call. Not for kazoo's threads."""
        if not paths:
            return
        arrived = threading.Event()
        *others, last = paths
        with self._lock:
            for path in others:
                self._look(path)
            self._look(last, arrived)
        if not arrived.wait(timeout_s):
            raise Disconnected("timeout while reading the catalog")

    # Requests

    def _session_changed(self, session: Session) -> None:
        if session is Session.CONNECTED and self._round:
            self._read_all()

    def _read_all(self) -> None:
        with self._lock:
            self._round += 1
            self._is_broken = False
            self._is_whole.clear()
            self._topics_listed.clear()
            self._looking.clear()
            for folder in (*self._folders, self._nested):
                self._list(folder)
            for path in dict.fromkeys((*self._leaves, *self.nodes)):
                self._look(path)

    def _event(self, path: str) -> None:
        with self._lock:
            # By its path: while everything is read again, a topic may not be listed yet.
            if path in self._folders or path == self._nested or path.rpartition("/")[0] == self._nested:
                self._list(path)
            else:
                self._look(path)

    def _look(self, path: str, arrived: threading.Event | None = None) -> None:
        asked_in = self._round
        self._open_questions += 1
        self._looking.add(path)
        self._store.look(
            path, lambda node: self._looked(path, node, arrived), lambda: self._failed(asked_in), self._event
        )

    def _look_out(self, path: str) -> None:
        """Watch for the creation of a missing node: reading it sets no watch, and its parent is not listed."""
        asked_in = self._round
        self._open_questions += 1
        self._store.look_out(
            path,
            lambda is_there: self._looked_out(path, is_there=is_there),
            lambda: self._failed(asked_in),
            self._event,
        )

    def _list(self, path: str) -> None:
        asked_in = self._round
        self._open_questions += 1
        self._store.list(path, lambda names: self._listed(path, names), lambda: self._failed(asked_in), self._event)

    # Responses, all in one thread

    def _looked(self, path: str, node: Node | None, arrived: threading.Event | None) -> None:
        known = self.nodes.get(path)
        if node != known:
            if node is None:
                del self.nodes[path]
            else:
                self.nodes[path] = node
            self._changed[path] = node
        if arrived is not None:
            self._waiting.append(arrived)
        with self._lock:
            self._looking.discard(path)
            if node is None and path in self._leaves:
                self._look_out(path)
            self._answered()

    def _looked_out(self, path: str, *, is_there: bool) -> None:
        with self._lock:
            if is_there:
                self._look(path)
            self._answered()

    def _listed(self, path: str, names: list[str] | None) -> None:
        with self._lock:
            if names is None:
                self._topics_listed.discard(path)
            for name in names or ():
                child = f"{path}/{name}"
                if path != self._nested:
                    if child not in self.nodes and child not in self._looking:
                        self._look(child)
                elif child not in self._topics_listed:
                    self._topics_listed.add(child)
                    self._list(child)
            self._answered()

    def _failed(self, asked_in: int) -> None:
        """Handle a lost connection; everything is read again after a reconnect."""
        with self._lock:
            if asked_in == self._round:
                self._is_broken = True
            self._answered()

    def _answered(self) -> None:
        self._open_questions -= 1
        is_quiet = self._open_questions == 0
        if self._is_whole.is_set() and (is_quiet or self._waiting or len(self._changed) >= _MOST_AT_ONCE):
            self._publish()
        elif is_quiet and not self._is_broken:
            self._publish()
            self._is_whole.set()

    def _publish(self) -> None:
        changed, self._changed = self._changed, {}
        if changed:
            for listener in self._listeners:
                listener(changed)
        waiting, self._waiting = self._waiting, []
        for arrived in waiting:
            arrived.set()
