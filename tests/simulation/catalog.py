"""The simulated catalog: one tree, and per node a link to it with expiring sessions, like ZooKeeper's."""

from __future__ import annotations

import contextvars
import itertools
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from ottla.cluster.builtin.tree import Aspect, Event, Tree
from ottla.cluster.operations import Conflict, Delete, Disconnected
from ottla.cluster.store import Session

from . import blocking
from .network import PACKET_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.cluster.operations import Node, Operation
    from ottla.cluster.store import OnChildren, OnFailure, OnNode, OnWatched

    from .loop import SimLoop
    from .network import Network
    from .parties import Party

HOST: Final = "catalog"
_RETRY_S: Final = 0.15
_LOST: Final = object()
_NOBODYS: Final = contextvars.Context()


class _ServerSession:
    def __init__(self, session_id: int, store: SimStore) -> None:
        self.id = session_id
        self.store = store
        self.heard_s = 0.0
        self.is_over = False


class Keeper:
    """The ensemble as one server that never fails; its messages may be delayed or lost."""

    def __init__(self, loop: SimLoop, timeout_s: float) -> None:
        self.loop = loop
        self.timeout_s = timeout_s
        self.slow_s = 0.0
        self.tree = Tree({}, 0)
        self.commits: list[Callable[[float, Sequence[Operation]], None]] = []
        """Called with every change."""
        self._ids = itertools.count(1)
        self._sessions: dict[int, _ServerSession] = {}
        self._watchers: defaultdict[Event, dict[int, None]] = defaultdict(dict)

    def begin(self, store: SimStore) -> int:
        session = _ServerSession(next(self._ids), store)
        session.heard_s = self.loop.now_s
        self._sessions[session.id] = session
        self._look_at_later(session)
        return session.id

    def is_alive(self, session_id: int) -> bool:
        """Whether the session is alive; asking renews it."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.heard_s = self.loop.now_s
        return session is not None

    def _look_at_later(self, session: _ServerSession) -> None:
        self.loop.call_at(session.heard_s + self.timeout_s, self._look_at, session)

    def _look_at(self, session: _ServerSession) -> None:
        if session.is_over:
            return
        if self.loop.now_s >= session.heard_s + self.timeout_s:
            self.end(session.id)
        else:
            self._look_at_later(session)

    def end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        session.is_over = True
        for watching in self._watchers.values():
            watching.pop(session_id, None)
        owned = sorted(self.tree.owned_by(session_id))
        self.loop.note("expired", session_id, owned)
        self._apply(self.tree.plan([Delete(path) for path in owned], session_id))

    # Questions

    def look(self, path: str, session_id: int, *, is_watched: bool) -> Node | None:
        node = self.tree.get(path)
        if is_watched and node is not None:
            self._watchers[Event(Aspect.ITSELF, path)][session_id] = None
        return node

    def look_out(self, path: str, session_id: int) -> bool:
        self._watchers[Event(Aspect.ITSELF, path)][session_id] = None
        return self.tree.get(path) is not None

    def list(self, path: str, session_id: int) -> list[str] | None:
        names = self.tree.children(path)
        if names is not None:
            self._watchers[Event(Aspect.CHILDREN, path)][session_id] = None
        return names

    def commit(self, operations: Sequence[Operation], session_id: int) -> Conflict | None:
        try:
            changes = self.tree.plan(operations, session_id)
        except Conflict as conflict:
            return conflict
        self.loop.note("commit", [operation.path for operation in operations])
        self._apply(changes)
        for told in self.commits:
            told(self.loop.now_s, operations)
        return None

    def _apply(self, changes: Any) -> None:
        for event in self.tree.apply(changes):
            for session_id in self._watchers.pop(event, {}):
                self._sessions[session_id].store.tell(event, session_id)


class _Pipe:
    """One direction of a connection: in order, and nothing passes while the link is cut."""

    def __init__(self, keeper: Keeper, network: Network, source: str, target: str) -> None:
        self._keeper = keeper
        self._network = network
        self._link = network.link(source, target)
        self._coming: deque[tuple[float, Callable[[], None]]] = deque()
        self._sent_s = 0.0

    def send(self, what: Callable[[], None]) -> None:
        """What is sent at nearly the same time travels in one packet."""
        keeper, coming = self._keeper, self._coming
        now_s = keeper.loop.now_s
        if coming and now_s < self._sent_s + PACKET_S:
            coming.append((coming[-1][0], what))
            return
        self._sent_s = now_s
        chance = self._network.chance
        at_s = now_s + self._link.delay_s(chance) + keeper.slow_s * chance.random()
        if coming:
            coming.append((max(at_s, coming[-1][0]), what))
        else:
            coming.append((at_s, what))
            keeper.loop.call_at(at_s, self._arrive, context=_NOBODYS)

    def arrive_soon(self) -> None:
        """The link is healed."""
        self._keeper.loop.call_soon(self._arrive, context=_NOBODYS)

    def _arrive(self) -> None:
        loop = self._keeper.loop
        if self._link.is_cut:
            self._link.stalled.append(self)
            return
        now_s = loop.now_s
        due = []
        while self._coming and self._coming[0][0] <= now_s:
            due.append(self._coming.popleft()[1])
        if self._coming:
            loop.call_at(self._coming[0][0], self._arrive, context=_NOBODYS)
        for arrived in due:
            arrived()


class SimStore:
    """See `ottla.cluster.store.Store`. One for each process that is a node."""

    def __init__(self, keeper: Keeper, network: Network, party: Party) -> None:
        self.timeout_s = keeper.timeout_s
        self.session_id = 0
        self.is_connected = False
        self._keeper = keeper
        self._network = network
        self._loop = keeper.loop
        self._party = party
        self._listeners: list[Callable[[Session], None]] = []
        self._watches: dict[Event, dict[OnWatched, None]] = {}
        self._waiting: dict[int, Callable[[Any], None]] = {}
        self._numbers = itertools.count()
        self._there = _Pipe(keeper, network, party.host, HOST)
        self._back = _Pipe(keeper, network, HOST, party.host)
        self._connection = 0
        """The number of the connection: messages of older ones are dropped."""
        self._heard_s = 0.0
        self._is_closed = False

    # Starting and stopping

    def open(self) -> None:
        opened = blocking.Event()
        self._listeners.append(lambda session: opened.set() if session is Session.CONNECTED else None)
        self._connect()
        if not opened.wait(15.0):
            self.close()
            raise Disconnected("the catalog does not answer")
        self._listeners.pop(0)

    def close(self) -> None:
        self._is_closed = True
        if self.is_connected:
            session_id = self.session_id
            self._travel(lambda: self._keeper.end(session_id))
        self._break(tells=False)

    def listen(self, listener: Callable[[Session], None]) -> None:
        self._listeners.append(listener)

    # Connecting

    def _connect(self) -> None:
        if self._is_closed:
            return
        self._connection += 1
        connection = self._connection

        def greet() -> None:
            is_new = not self._keeper.is_alive(self.session_id)
            session_id = self._keeper.begin(self) if is_new else self.session_id
            self._travel_back(lambda: self._greeted(connection, session_id))

        def give_up() -> None:
            if connection == self._connection and not self.is_connected:
                self._connect()

        self._travel(greet)
        self._loop.call_later(self.timeout_s / 3, give_up, context=self._party.context)

    def _greeted(self, connection: int, session_id: int) -> None:
        if connection != self._connection or self._is_closed:
            return
        if self.session_id and session_id != self.session_id:
            self._watches.clear()
            self._tell(Session.LOST)
        self.session_id = session_id
        self.is_connected = True
        self._heard_s = self._loop.now_s
        self._tell(Session.CONNECTED)
        self._ping(connection)

    def _ping(self, connection: int) -> None:
        if connection != self._connection or not self.is_connected:
            return
        if self._loop.now_s - self._heard_s > self.timeout_s * 2 / 3:
            self._break(tells=True)
            self._connect()
            return
        self._ask(lambda: None, lambda _: None)
        self._loop.call_later(self.timeout_s / 3, self._ping, connection, context=self._party.context)

    def break_off(self) -> None:
        """The connection is gone; a new one is tried soon."""
        if self.is_connected:
            self._break(tells=True)
            self._loop.call_later(_RETRY_S, self._connect, context=self._party.context)

    def _break(self, *, tells: bool) -> None:
        self.is_connected = False
        self._connection += 1
        waiting, self._waiting = self._waiting, {}
        for answered in waiting.values():
            self._soon(answered, _LOST)
        if tells:
            self._tell(Session.SUSPENDED)

    def _tell(self, session: Session) -> None:
        for listener in self._listeners:
            listener(session)

    def _soon(self, what: Callable[..., None], *args: Any) -> None:
        self._loop.call_soon(what, *args, context=self._party.context)

    # The way there and back

    def _travel(self, what: Callable[[], None]) -> None:
        """Run at the other end, in order; delayed while the link is cut, and never if the connection breaks."""
        connection = self._connection
        self._there.send(lambda: what() if connection == self._connection or self._is_closed else None)

    def _travel_back(self, what: Callable[[], None]) -> None:
        connection = self._connection

        def heard() -> None:
            if connection == self._connection:
                self._heard_s = self._loop.now_s
                what()

        self._back.send(lambda: self._hear(heard))

    def _hear(self, heard: Callable[[], None]) -> None:
        party = self._party
        if party.is_dead or party.is_paused:
            self._soon(heard)
        else:
            party.context.run(heard)

    def tell(self, event: Event, session_id: int) -> None:
        if session_id != self.session_id:
            return

        def told() -> None:
            for watch in self._watches.pop(event, {}):
                watch(event.path)

        self._travel_back(told)

    def _ask(self, question: Callable[[], Any], answered: Callable[[Any], None]) -> None:
        """`answered` gets _LOST if the response is lost."""
        if not self.is_connected:
            self._soon(answered, _LOST)
            return
        number = next(self._numbers)
        self._waiting[number] = answered
        session_id = self.session_id

        def ask() -> None:
            if not self._keeper.is_alive(session_id):
                self._travel_back(self._expired)
                return
            found = question()
            self._travel_back(lambda: answer(found))

        def answer(found: Any) -> None:
            if (waiting := self._waiting.pop(number, None)) is not None:
                waiting(found)

        self._travel(ask)

    def _expired(self) -> None:
        self.break_off()

    # Asking

    def look(self, path: str, found: OnNode, failed: OnFailure, watch: OnWatched | None = None) -> None:
        def answered(answer: Any) -> None:
            if answer is _LOST:
                failed()
                return
            if watch is not None and answer is not None:
                self._watches.setdefault(Event(Aspect.ITSELF, path), {})[watch] = None
            found(answer)

        self._ask(lambda: self._keeper.look(path, self.session_id, is_watched=watch is not None), answered)

    def look_out(self, path: str, found: Callable[[bool], None], failed: OnFailure, watch: OnWatched) -> None:
        def answered(answer: Any) -> None:
            if answer is _LOST:
                failed()
                return
            self._watches.setdefault(Event(Aspect.ITSELF, path), {})[watch] = None
            found(answer)

        self._ask(lambda: self._keeper.look_out(path, self.session_id), answered)

    def list(self, path: str, found: OnChildren, failed: OnFailure, watch: OnWatched) -> None:
        def answered(answer: Any) -> None:
            if answer is _LOST:
                failed()
                return
            if answer is not None:
                self._watches.setdefault(Event(Aspect.CHILDREN, path), {})[watch] = None
            found(answer)

        self._ask(lambda: self._keeper.list(path, self.session_id), answered)

    def read(self, path: str) -> Node | None:
        answer: Node | None = self._wait_for(lambda: self._keeper.look(path, self.session_id, is_watched=False))
        return answer

    def commit(self, operations: Sequence[Operation]) -> None:
        session_id = self.session_id
        conflict = self._wait_for(lambda: self._keeper.commit(operations, session_id))
        if conflict is not None:
            raise conflict

    def _wait_for(self, question: Callable[[], Any]) -> Any:
        done = blocking.Event()
        answers: list[Any] = []

        def answered(answer: Any) -> None:
            answers.append(answer)
            done.set()

        self._ask(question, answered)
        if not done.wait(self.timeout_s) or answers[0] is _LOST:
            raise Disconnected("no answer")
        return answers[0]
