"""Finds the broker for a request, and a connection to it.

Metadata is fetched from any reachable broker: known brokers first, the bootstrap servers
as the last resort. It is refreshed when it turns out to be stale, and when it is old.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.client.backoff import Backoff
from ottla.client.chance import CHANCE
from ottla.client.connections import Connections, Purpose
from ottla.client.coordinators import Coordinators
from ottla.client.errors import (
    BrokerUnavailable,
    ClientClosed,
    ClientError,
    ConnectFailed,
    RequestTimedOut,
    broker_error,
)
from ottla.client.refreshing import Refresher
from ottla.client.view import EMPTY_VIEW, ClusterView, TopicView
from ottla.core.errors import ErrorCode
from ottla.wire.declare import Response
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.client.config import ClientConfig
    from ottla.client.connection import Connection
    from ottla.core.ids import Address
    from ottla.wire.codec import RequestFor

__all__ = ["Purpose", "Router"]

ResponseT = TypeVar("ResponseT", bound=Response)
_log: Final = logging.getLogger(__name__)

_MAY_COME_TO_BE: Final = (
    ErrorCode.NONE,  # but without a leader
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
)


class Router:
    def __init__(self, bootstrap: tuple[Address, ...], config: ClientConfig) -> None:
        self.view: ClusterView = EMPTY_VIEW
        self.config = config
        self.backoff = Backoff(config.backoff_first_ms, config.backoff_max_ms)
        self._stale_backoff = Backoff(
            config.backoff_first_ms, min(config.backoff_max_ms, config.stale_metadata_retry_ms)
        )
        self._bootstrap = bootstrap
        self._connections = Connections(config)
        self._coordinators = Coordinators(self)
        self._refresher = Refresher(self._fetch_with_retries)
        self._watched: set[str] = set()
        self._watches_all = False
        self._listeners: list[Callable[[], None]] = []
        self._stale = asyncio.Event()
        self._marked_stale_s = float("-inf")
        self._keeper: asyncio.Task[None] | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Connect to the cluster; fails if no broker is reachable."""
        await self.refresh(())
        self._leave_bootstrap()
        self._keeper = asyncio.create_task(self._keep_fresh())

    async def close(self) -> None:
        """Close: all waiters get ClientClosed."""
        self._is_closed = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self._refresher.close()
        await self._connections.close()

    # Metadata

    def leader(self, topic: str, partition: int) -> int:
        """The leader of this partition; -1 if unknown or none."""
        return self.view.leader(topic, partition)

    def watch(self, topics: Iterable[str] | None) -> None:
        """Keep these topics fresh from now on; None for all topics."""
        if topics is None:
            self._watches_all = True
        else:
            self._watched.update(topics)

    def subscribe_to_changes(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each metadata change; returns a function to unsubscribe."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    async def refresh(self, topics: Iterable[str] | None = None) -> None:
        """Refresh these topics, or all, and the watched ones; concurrent callers share one request."""
        if self._is_closed:
            raise ClientClosed
        await self._refresher.ask(topics)

    def mark_stale(self) -> None:
        """Refresh stale metadata in the background, soon.

        Repeats for a while if nothing has changed: the cluster may not have noticed yet.
        """
        self._marked_stale_s = asyncio.get_running_loop().time()
        self._stale.set()

    async def topic(self, name: str, *, allow_auto_create: bool = False) -> TopicView:
        """The metadata of this topic, once it exists and has a leader; watched from now on."""
        known = self.view.topics.get(name)
        if known is not None and known.error is ErrorCode.NONE and known.has_leader:
            self._watched.add(name)
            return known
        found = await self._wait_for_topic(name, allow_auto_create=allow_auto_create)
        self._watched.add(name)
        return found

    # Requests

    async def connection(self, node_id: int, purpose: Purpose, owner: object = None) -> Connection:
        """An open or new connection; each owner has its own."""
        broker = self.view.brokers.get(node_id)
        if broker is None:
            raise ConnectFailed(f"broker {node_id} is not in the cluster: {sorted(self.view.brokers)}")
        try:
            return await self._connections.get(broker.address, purpose, owner)
        except BrokerUnavailable:
            self.mark_stale()  # its partitions may have new leaders
            raise

    async def ask(
        self,
        request: RequestFor[ResponseT],
        *,
        node_id: int | None = None,
        purpose: Purpose = Purpose.ASK,
        timeout_s: float | None = None,
    ) -> ResponseT:
        """Send a request to this broker, or to any; only the latter is retried elsewhere if a connection fails."""
        if node_id is not None:
            connection = await self.connection(node_id, purpose)
            return await connection.ask(request, timeout_s=timeout_s)
        failures: list[BrokerUnavailable] = []
        for address in self._candidates(purpose):
            try:
                connection = await self._connections.get(address, purpose)
                return await connection.ask(request, timeout_s=timeout_s)
            except RequestTimedOut:
                raise
            except BrokerUnavailable as failed:
                failures.append(failed)
        raise _all_failed(failures)

    async def coordinator(self, key: str, kind: int = 0) -> int:
        """The coordinator of this group (kind 0) or transactional id (kind 1)."""
        return await self._coordinators.find(key, kind)

    def forget_coordinator(self, key: str, kind: int = 0) -> None:
        """Forget a coordinator that does not answer, or is no longer the coordinator."""
        self._coordinators.forget(key, kind)

    def learn(self, view: ClusterView) -> None:
        """Install this view and notify the listeners."""
        before, self.view = self.view, view
        if before == view:
            return
        still_used = {broker.address for broker in view.brokers.values()} | set(self._bootstrap)
        for broker in before.brokers.values():
            if broker.address not in still_used:
                self._connections.drop(broker.address)
        for listener in list(self._listeners):
            listener()

    # Fetching metadata

    def _leave_bootstrap(self) -> None:
        """Close the bootstrap connection to a broker that is known by another address."""
        still_used = {broker.address for broker in self.view.brokers.values()}
        for address in self._bootstrap:
            if address not in still_used:
                self._connections.drop(address)

    def _candidates(self, purpose: Purpose) -> list[Address]:
        """All addresses to try: connected and idle ones first, recently failed ones last."""
        known = [broker.address for broker in self.view.brokers.values()]
        CHANCE.shuffle(known)
        known.sort(key=lambda address: not self._is_idle(address, purpose))
        return sorted(dict.fromkeys([*known, *self._bootstrap]), key=self._connections.is_resting)

    def _is_idle(self, address: Address, purpose: Purpose) -> bool:
        """Whether there is a connection without requests in flight: others may be stuck."""
        connection = self._connections.existing(address, purpose)
        return connection is not None and connection.waiting_count == 0

    async def _fetch_with_retries(self, topics: set[str] | None) -> None:
        rounds = 0
        while True:
            try:
                await self._fetch(topics)
            except BrokerUnavailable:
                rounds += 1
                if rounds == self.config.metadata_refresh_retry_count:
                    raise
            else:
                return
            await asyncio.sleep(self.config.metadata_refresh_retry_ms / 1000)

    async def _fetch(self, topics: set[str] | None) -> None:
        are_all = topics is None or self._watches_all
        named = None if are_all else sorted(self._watched | (topics or set()))
        response = await self._ask_for_metadata(named, allow_auto_create=False)
        self.learn(self.view.merged(response, are_all_topics=are_all))

    async def _ask_for_metadata(self, names: list[str] | None, *, allow_auto_create: bool) -> MetadataResponse:
        topics = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=allow_auto_create)
        # Any broker can answer this, so do not wait longer for a stuck one than for an unreachable one.
        timeout_s = min(self.config.connect_timeout_ms, self.config.request_timeout_ms) / 1000
        failures: list[BrokerUnavailable] = []
        for address in self._candidates(Purpose.ASK):
            try:
                connection = await self._connections.get(address, Purpose.ASK)
                response = await connection.ask(request, timeout_s=timeout_s)
            except BrokerUnavailable as failed:
                failures.append(failed)
            else:
                if response.brokers and response.error_code == ErrorCode.NONE:
                    return response
                failures.append(ConnectFailed(f"{address} does not know its cluster (starting up or shutting down)"))
        raise _all_failed(failures)

    async def _wait_for_topic(self, name: str, *, allow_auto_create: bool) -> TopicView:
        loop = asyncio.get_running_loop()
        began = loop.time()
        attempts = 0
        while True:
            if allow_auto_create:
                response = await self._ask_for_metadata([name], allow_auto_create=True)
                self.learn(self.view.merged(response, are_all_topics=False))
            else:
                await self.refresh([name])
            found = self.view.topics.get(name)
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else found.error
            if found is not None and error is ErrorCode.NONE and found.has_leader:
                return found
            attempts += 1
            if error not in _MAY_COME_TO_BE or loop.time() - began >= self._timeout_s(error):
                code = error if error is not ErrorCode.NONE else ErrorCode.LEADER_NOT_AVAILABLE
                raise broker_error(code, f"topic {name!r}")
            await asyncio.sleep(min(self.config.leader_election_retry_ms / 1000, self.backoff.delay_s(attempts)))

    def _timeout_s(self, error: ErrorCode) -> float:
        one_pause_s = self.config.leader_election_retry_ms / 1000
        if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return one_pause_s  # brokers learn of a new topic quickly; do not wait forever
        return one_pause_s * (self.config.leader_election_retry_count or float("inf"))

    async def _keep_fresh(self) -> None:
        failures = 0
        is_away = False
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await self._until_stale()
            if loop.time() - last > self.config.backoff_max_ms / 1000:
                failures = 0
            backoff = self.backoff if is_away else self._stale_backoff
            await asyncio.sleep(backoff.delay_s(failures))
            self._stale.clear()
            failures += 1
            before = self.view
            try:
                await self.refresh(())
                is_away = False
                if self.view == before and loop.time() < self._marked_stale_s + self._doubt_s:
                    self._stale.set()
            except ClientError as failed:
                # Logged once per outage.
                _log.log(logging.DEBUG if is_away else logging.WARNING, "could not refresh metadata: %s", failed)
                is_away = True
                self._stale.set()
            last = loop.time()

    @property
    def _doubt_s(self) -> float:
        """How long to keep refreshing: as long as the longest delay of callers that mark metadata as stale."""
        return self.config.backoff_max_ms / 1000

    async def _until_stale(self) -> None:
        try:
            async with asyncio.timeout(self.config.metadata_max_age_ms / 1000):
                await self._stale.wait()
        except TimeoutError:
            return


def _all_failed(failures: list[BrokerUnavailable]) -> BrokerUnavailable:
    if len(failures) == 1:
        return failures[0]
    return ConnectFailed("no broker is reachable: " + "; ".join(map(str, failures)))
