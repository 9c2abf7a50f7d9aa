"""The connection to ZooKeeper. Only this module uses kazoo, which runs separate threads.

Callbacks are called in those threads, one at a time for each kind: events, and results.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry
from kazoo.security import make_acl, make_digest_acl

from ottla.cluster.operations import Check, Conflict, Create, Delete, Disconnected, Node, Put
from ottla.cluster.store import Session
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kazoo.client import TransactionRequest
    from kazoo.interfaces import IAsyncResult
    from kazoo.protocol.states import WatchedEvent, ZnodeStat

    from ottla.cluster.config import ClusterConfig
    from ottla.cluster.operations import Operation
    from ottla.cluster.store import OnChildren, OnFailure, OnNode

_logger: Final = logging.getLogger(__name__)

_MISFITS: Final = (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError)
_RETRY_S: Final = 1.0
_ATTEMPTS_IN_A_SESSION: Final = 3


class ZooKeeper:
    """See `store.Store` for the contract of each method."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._client = _client(config)
        self._client.add_listener(self._changed)
        self._listeners: list[Callable[[Session], None]] = []
        self._session = Session.LOST
        self._attempts = _Attempts(self._client, config.session_timeout_ms / 1000)

    @property
    def timeout_s(self) -> float:
        """The session timeout that ZooKeeper granted, which may be shorter than requested."""
        return self._attempts.granted_s

    # Starting and stopping

    def open(self) -> None:
        """Connect, and create the root node if it is missing; raises ConfigError on failure."""
        try:
            # Not `start`, which warns if the root node does not exist yet.
            self._client.start_async().wait(self._config.connect_timeout_ms / 1000)
            if not self._client.connected:
                raise KazooTimeoutError("no response")  # noqa: TRY301
            self._client.ensure_path("/")
        except (KazooTimeoutError, KazooException) as refused:
            self.close()
            raise ConfigError(f"could not connect to ZooKeeper at {self._config.zookeeper}: {refused}") from refused

    def close(self) -> None:
        """End the session: its ephemeral nodes are deleted at once."""
        self._client.stop()
        self._client.close()

    @property
    def session_id(self) -> int:
        return self._client.client_id[0] if self._client.client_id else 0

    @property
    def is_connected(self) -> bool:
        return bool(self._client.connected)

    def listen(self, listener: Callable[[Session], None]) -> None:
        """Register a listener, which must not block, nor wait for ZooKeeper."""
        self._listeners.append(listener)

    def _changed(self, state: str) -> None:
        session = {
            KazooState.CONNECTED: Session.CONNECTED,
            KazooState.SUSPENDED: Session.SUSPENDED,
            KazooState.LOST: Session.LOST,
        }[state]
        before, self._session = self._session, session
        is_interruption = Session.SUSPENDED in (before, session)
        _logger.log(
            logging.WARNING if is_interruption else logging.INFO, "the connection to ZooKeeper is %s", session.value
        )
        for listener in self._listeners:
            listener(session)

    # Reading

    def look(self, path: str, found: OnNode, failed: OnFailure, watch: Callable[[str], None] | None = None) -> None:
        """Read a node, None if it does not exist; `watch` is called once when it changes."""
        self._ask(self._client.get_async(path, _watcher(watch)), lambda value: found(_node(*value)), found, failed)

    def look_out(
        self, path: str, found: Callable[[bool], None], failed: OnFailure, watch: Callable[[str], None]
    ) -> None:
        """Whether the node exists; `watch` is called once when it is created."""
        result = self._client.exists_async(path, _watcher(watch))
        self._ask(result, lambda stat: found(stat is not None), lambda _: found(False), failed)  # noqa: FBT003

    def list(self, path: str, found: OnChildren, failed: OnFailure, watch: Callable[[str], None]) -> None:
        self._ask(self._client.get_children_async(path, _watcher(watch)), found, found, failed)

    def _ask(
        self,
        result: IAsyncResult,
        found: Callable[[Any], None],
        missing: Callable[[None], None],
        failed: OnFailure,
    ) -> None:
        def done(answered: IAsyncResult) -> None:
            if answered.successful():
                found(answered.value)
            elif isinstance(answered.exception, NoNodeError):
                missing(None)
            else:
                failed()

        result.rawlink(done)

    def read(self, path: str) -> Node | None:
        """Read a node and wait for the result. Must not be called in kazoo's threads."""
        try:
            return _node(*self._client.get_async(path).get(timeout=self.timeout_s))
        except NoNodeError:
            return None
        except (KazooException, KazooTimeoutError) as failed:
            raise Disconnected(str(failed) or type(failed).__name__) from failed

    # Changing

    def commit(self, operations: Sequence[Operation]) -> None:
        """Apply operations atomically. Raises Conflict if a condition fails, Disconnected if the outcome is unknown."""
        transaction = self._client.transaction()
        for operation in operations:
            _add(transaction, operation)
        try:
            results = transaction.commit_async().get(timeout=self.timeout_s)
        except (KazooException, KazooTimeoutError) as failed:
            raise Disconnected(str(failed) or type(failed).__name__) from failed
        for index, result in enumerate(results):
            if isinstance(result, _MISFITS):
                raise Conflict(index, operations[index])
            if isinstance(result, SessionExpiredError):
                raise Disconnected("the session has ended")
            if isinstance(result, Exception) and not isinstance(result, RolledBackError | RuntimeInconsistency):
                raise Disconnected(f"ZooKeeper rejected {operations[index].path}: {type(result).__name__}")


class _Attempts:
    """kazoo's connection attempts with a shorter timeout, and access to the granted session timeout.

    By default kazoo waits for a whole session timeout. A dead server, or a starting one that never responds to early
    requests, would then cost the session, although another server, or a later attempt, would respond.
    """

    def __init__(self, client: KazooClient, session_timeout_s: float) -> None:
        self.granted_s = session_timeout_s
        self._longest_s = session_timeout_s
        self._timeout_s = session_timeout_s / _ATTEMPTS_IN_A_SESSION
        connection, handler = client._connection, client.handler  # noqa: SLF001
        self._connect, self._invoke = connection._connect, connection._invoke  # noqa: SLF001
        self._create_connection = handler.create_connection
        connection._connect, connection._invoke = self.connect, self.invoke  # noqa: SLF001
        handler.create_connection = self.create_connection

    def connect(self, *where: object) -> object:
        try:
            read_timeout_ms, connect_timeout_ms = self._connect(*where)
        except KazooTimeoutError:
            # A slow server gets a longer timeout in later attempts.
            self._timeout_s = min(self._timeout_s * 2, self._longest_s)
            raise
        self._timeout_s = self._longest_s / _ATTEMPTS_IN_A_SESSION
        self.granted_s = read_timeout_ms * 1.5 / 1000
        return read_timeout_ms, connect_timeout_ms

    def create_connection(self, *args: object, timeout: float, **more: object) -> object:
        return self._create_connection(*args, timeout=min(timeout, self._timeout_s), **more)

    def invoke(self, timeout: float, *request: object, **more: object) -> object:
        return self._invoke(min(timeout, self._timeout_s), *request, **more)


def _client(config: ClusterConfig) -> KazooClient:
    options: dict[str, Any] = {}
    user, password = config.zookeeper_user, config.zookeeper_password
    if config.zookeeper_sasl:
        options["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
        options["default_acl"] = [make_acl("sasl", user, all=True)]
    elif user:
        options["auth_data"] = [("digest", f"{user}:{password}")]
        options["default_acl"] = [make_digest_acl(user, password, all=True)]
    if config.zookeeper_tls_ca is not None:
        options |= {"use_ssl": True, "ca": str(config.zookeeper_tls_ca), "check_hostname": True}
    if config.zookeeper_tls_cert is not None:
        options |= {"certfile": str(config.zookeeper_tls_cert), "keyfile": str(config.zookeeper_tls_key)}
    return KazooClient(
        hosts=config.zookeeper,
        timeout=config.session_timeout_ms / 1000,
        # Reconnects are retried often and without limit: otherwise the session could expire.
        connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=_RETRY_S, max_jitter=0.4),
        **options,
    )


def _add(transaction: TransactionRequest, operation: Operation) -> None:
    match operation:
        case Create():
            transaction.create(operation.path, operation.data, ephemeral=operation.is_ephemeral)
        case Put():
            transaction.set_data(operation.path, operation.data, version=operation.version)
        case Delete():
            transaction.delete(operation.path, version=operation.version)
        case Check():
            transaction.check(operation.path, version=operation.version)


def _node(data: bytes, stat: ZnodeStat) -> Node:
    return Node(data, stat.version, stat.czxid, stat.ephemeralOwner)


def _watcher(watch: Callable[[str], None] | None) -> Callable[[Any], None] | None:
    return None if watch is None else _Watcher(watch)


class _Watcher:
    """Equal for equal targets: kazoo keeps a set of watches per path, and would call duplicates."""

    __slots__ = ("_target",)

    def __init__(self, target: Callable[[str], None]) -> None:
        self._target = target

    def __call__(self, event: WatchedEvent) -> None:
        # An event without a path is about the session, which goes to `listen`.
        if event.path is not None:
            self._target(event.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Watcher) and self._target == other._target

    def __hash__(self) -> int:
        return hash(self._target)
