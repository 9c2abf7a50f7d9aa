"""This node of a cluster, in the broker's event loop: the view, the lease, and requests to ZooKeeper.

Blocking requests run in worker threads; their results and kazoo's events are posted to the loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.cluster import election, reassignment
from ottla.cluster.control import Control
from ottla.cluster.exposed_shards import ExposedShards
from ottla.cluster.knowledge import Knowledge
from ottla.cluster.leaderless import why_leaderless
from ottla.cluster.membership import register, step_back, unregister, update_registration, wait_for_number
from ottla.cluster.nodes import partition_data, partition_path, registration_path
from ottla.cluster.operations import Check, Conflict, Disconnected, Put
from ottla.cluster.registration import fence, mark, recognise
from ottla.cluster.session import SessionKeeper
from ottla.cluster.state import (
    NO_LOSSES,
    BrokerInfo,
    ClusterView,
    InvalidUpdateVersion,
    NotInSession,
    PartitionKey,
    PartitionState,
    ViewChange,
)
from ottla.core.errors import ConfigError, NotLeaderOrFollower, RequestTimedOut, UnknownTopicOrPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ottla.cluster.config import ClusterConfig
    from ottla.cluster.connecting import Connected
    from ottla.cluster.operations import Node
    from ottla.cluster.state import Losses, ViewListener
    from ottla.core.ids import Address, TopicId
    from ottla.storage.folder.folder_identity import FolderIdentity

_logger: Final = logging.getLogger(__name__)

T = TypeVar("T")

_WORKERS: Final = 4
_MOST_TRIES: Final = 20
_START_TRIES: Final = 5
_MOST_COMPLAINTS: Final = 20
_MARK_EVERY_S: Final = 60.0
"""A copy of the data folder older than this is detected when a node returns with it after a crash."""


class JoinedCluster:
    """See `state.Cluster` for the contract of each method."""

    def __init__(self, connected: Connected, config: ClusterConfig, node_id: int, folder: FolderIdentity) -> None:
        self.node_id = node_id
        self.config = config
        self._connected = connected
        self._folder = folder
        self._knowledge = Knowledge()
        self._listeners: list[ViewListener] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._learnt_early: list[Mapping[str, Node | None]] = []
        self._starting = threading.Lock()
        self._me: BrokerInfo | None = None
        self._marking: asyncio.Task[None] | None = None
        self._offline: frozenset[PartitionKey] = frozenset()
        self._workers = ThreadPoolExecutor(_WORKERS, "ottla-cluster")
        self._session = SessionKeeper(connected.store, self._register_again, self._announce)
        self.control = Control(self, connected)
        self.exposed_shards = ExposedShards(connected.store, connected.mirror)
        recognise(connected.store, folder)
        connected.mirror.listen(self._learnt)
        self._knowledge.learn(dict(connected.mirror.nodes))

    # Queries

    @property
    def view(self) -> ClusterView:
        return self._knowledge.view

    @property
    def knowledge(self) -> Knowledge:
        return self._knowledge

    @property
    def folder_id(self) -> str:
        return self._folder.id

    @property
    def may_have_lost_power(self) -> bool:
        """Whether the machine may have been restarted since this node last ran."""
        return not self._folder.is_on_same_machine

    @property
    def has_copied_folder(self) -> bool:
        """Whether its data folder is a copy of the original, and may be older."""
        return self._folder.is_copy

    @property
    def is_fenced(self) -> bool:
        return self._session.is_fenced

    def listen(self, listener: ViewListener) -> None:
        self._listeners.append(listener)

    def on_session_lost(self, callback: Callable[[], None]) -> None:
        self._session.on_lost(callback)

    def _learnt(self, changed: Mapping[str, Node | None]) -> None:
        """Apply changes. Called in the mirror's thread."""
        with self._starting:
            if self._loop is None:
                self._learnt_early.append(changed)
                return
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._learn, changed)

    def _learn(self, changed: Mapping[str, Node | None]) -> None:
        change = self._knowledge.learn(changed)
        if change.after is not change.before:
            self._tell(change)
        self.control.noticed(change)

    def _tell(self, change: ViewChange) -> None:
        for listener in tuple(self._listeners):
            listener(change)

    def _announce(self) -> None:
        """Announce that this node may again lead the partitions that the view assigns to it."""
        mine = frozenset(state.key for state in self.view.held_by(self.node_id))
        self._tell(ViewChange(self.view, self.view, mine))

    # Starting and stopping

    async def start(self, listeners: Mapping[str, Address], free_bytes: int, losses: Losses = NO_LOSSES) -> None:
        """Register this node for clients and other nodes."""
        with self._starting:
            self._loop = asyncio.get_running_loop()
        for changed in self._learnt_early:
            self._learn(changed)
        rack = self.config.rack or None
        me = BrokerInfo(self.node_id, dict(listeners), rack, free_bytes=free_bytes, folder=self._folder.id)
        for tries_left in reversed(range(_START_TRIES)):
            try:
                await self._join(me, losses)
                break
            except Disconnected as gone:
                if not tries_left:
                    raise ConfigError(f"could not register: the connection to ZooKeeper was lost: {gone}") from gone
                _logger.warning("retrying the registration: the connection to ZooKeeper was lost: %s", gone)
                await self._wait_for_catalog()
        self._session.start()
        self.control.start()
        self._marking = self._loop.create_task(self._mark_periodically())

    async def _join(self, me: BrokerInfo, losses: Losses) -> None:
        """Each step can be repeated: a lost connection delays the start but does not fail it."""
        registration = await self.work(lambda: self._begin(me))
        self._me = replace(me, registration=registration)
        await self._step_back_after_restart(losses)
        # Only now: after a crash before this point, the next start must still assume that unsynced records are lost.
        await self.work(self._folder.note_machine)
        await self._register()

    async def _wait_for_catalog(self) -> None:
        timeout_s = self._connected.store.timeout_s
        await asyncio.sleep(timeout_s / 10)
        with suppress(Disconnected):
            await self.work(lambda: self._connected.mirror.wait_until_whole(timeout_s))

    def _begin(self, me: BrokerInfo) -> int:
        """Invalidate requests of previous processes of this node; returns the number of this start."""
        store, mirror = self._connected.store, self._connected.mirror
        wait_for_number(store, me, store.timeout_s * 2)
        registration = fence(store, self.node_id)
        mark(store, self.node_id, self._folder)
        # From here on, no leader can add this node to the ISR because of fetches of its previous process.
        mirror.refresh([partition_path(state.key) for state in self.view.held_by(self.node_id)], store.timeout_s)
        return registration

    async def _step_back_after_restart(self, losses: Losses) -> None:
        node, folder = self.node_id, self.folder_id

        def rule(state: PartitionState) -> PartitionState:
            is_empty, lacks = self._folder.is_new or state.key in losses.gone, state.key in losses.unsynced
            if not (losses.has_crashed or is_empty or lacks) and election.has_its_folder(state, node, folder):
                return state
            replica = election.StartingReplica(folder, is_empty, lacks)
            return election.returned(state, node, replica, self.view.brokers)

        while not await self._step_back(rule):
            _logger.warning("retrying to leave ISRs: they were changed concurrently")
        self._log_lost_partitions()

    def _log_lost_partitions(self) -> None:
        """Log the partitions that only this node could lead, but with a folder that it does not have."""
        assert self._me is not None  # noqa: S101 - for mypy: set by `start`
        left = [state for state in self.view.held_by(self.node_id) if self.node_id in state.isr]
        lost = [state for state in left if not election.has_its_folder(state, self.node_id, self.folder_id)]
        for state in lost[:_MOST_COMPLAINTS]:
            _logger.error("%s", why_leaderless(state, {**self.view.brokers, self.node_id: self._me}))
        if len(lost) > _MOST_COMPLAINTS:
            _logger.error("%d more partitions have no leader for the same reason", len(lost) - _MOST_COMPLAINTS)

    async def _mark_periodically(self) -> None:
        while True:
            await asyncio.sleep(_MARK_EVERY_S)
            await self._mark()

    async def _mark(self) -> None:
        try:
            await self.work(lambda: mark(self._connected.store, self.node_id, self._folder))
        except (Conflict, Disconnected) as failed:
            _logger.info("could not store the generation of the data folder: %s", failed)

    async def _register(self) -> None:
        assert self._me is not None  # noqa: S101 - for mypy: set by `start`
        connected, me = self._connected, self._with_offline(self._me)
        timeout_s = connected.store.timeout_s * 2
        await self.work(lambda: register(connected.store, connected.mirror, me, timeout_s))
        self._session.registered()

    async def _register_again(self) -> None:
        """Register again in a new session, once all changes by others have been read."""
        await self.work(lambda: self._connected.mirror.wait_until_whole(self._connected.store.timeout_s))
        await self._register()

    async def stop(self) -> None:
        """Controlled shutdown: hand over leadership before leaving."""
        await self.control.stop()
        if self._marking is not None:
            self._marking.cancel()
            await asyncio.gather(self._marking, return_exceptions=True)
        if not self.is_fenced:
            try:
                await self._step_back(lambda state: election.without(state, self.node_id, self.view.brokers))
                await self._mark()
                await self.work(lambda: unregister(self._connected.store, self.node_id))
            except Disconnected as lost:
                _logger.warning("could not hand over leadership before shutdown: %s", lost)
        await self._session.stop()

    def close(self) -> None:
        self._workers.shutdown(wait=False)
        self._connected.close()

    async def _step_back(self, rule: Callable[[PartitionState], PartitionState]) -> bool:
        """Hand over leadership, with retries after conflicts; returns whether all leaderships were handed over."""
        for _ in range(_MOST_TRIES):
            states = [
                state for state in self.view.held_by(self.node_id) if self.node_id in (*state.isr, *state.eligible)
            ]
            left = await self.work(
                lambda: step_back(self._connected.store, self._connected.mirror, states, rule)  # noqa: B023
            )
            if not left:
                return True
        return False

    # Changing

    async def work(self, what: Callable[[], T]) -> T:
        """Run a blocking request in a separate thread."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, what)

    async def change_isr(
        self,
        at: PartitionKey,
        new_isr: Mapping[int, int],
        leader_epoch: int,
        expected_version: int,
        lost: Collection[int] = (),
    ) -> PartitionState:
        state, brokers = self._state(at), self.view.brokers
        if state.leader != self.node_id or state.leader_epoch != leader_epoch:
            raise NotLeaderOrFollower(f"{state.topic}-{state.partition} has the leader {state.leader}")
        if self.is_fenced:
            raise NotInSession("this node has no connection to the catalog")
        if state.version != expected_version:
            raise InvalidUpdateVersion(f"{state.topic}-{state.partition} is at version {state.version}")
        # A broker that is offline, or has registered again since its last fetch, or has an offline replica, cannot
        # join.
        joining = {
            node
            for node, epoch in new_isr.items()
            if node not in state.isr
            and node in brokers
            and brokers[node].epoch == epoch
            and at not in brokers[node].offline
        }
        wanted = {node for node in new_isr if node in state.isr} | joining | {self.node_id}
        isr = tuple(node for node in state.replicas if node in wanted)
        fences = [
            Check(registration_path(node), brokers[node].registration)
            for node in joining
            if brokers[node].registration >= 0
        ]
        return await self._put(state, election.with_isr(state, isr, brokers, lost), fences)

    async def leave_isr(self, at: PartitionKey, *, may_lack_records: bool) -> PartitionState:
        rule = election.given_up if may_lack_records else election.without
        return await self._change(at, lambda state: rule(state, self.node_id, self.view.brokers))

    async def report_offline(self, replicas: Collection[PartitionKey]) -> None:
        self._offline = frozenset(replicas)
        if self._me is None:
            return  # offline replicas are part of the registration
        connected, me = self._connected, self._with_offline(self._me)
        try:
            await self.work(lambda: update_registration(connected.store, connected.mirror, me))
        except Disconnected as lost:
            raise NotInSession(str(lost)) from lost

    def _with_offline(self, me: BrokerInfo) -> BrokerInfo:
        return replace(me, offline=self._offline)

    async def _put(self, before: PartitionState, after: PartitionState, fences: Sequence[Check] = ()) -> PartitionState:
        path = partition_path(before.key)

        def put() -> bool:
            is_done = True
            try:
                self._connected.store.commit([Put(path, partition_data(after), before.version), *fences])
            except Conflict:
                is_done = False
            self._connected.mirror.refresh([path], self._connected.store.timeout_s)
            return is_done

        try:
            is_done = await self.work(put)
        except Disconnected as lost:
            raise NotInSession(str(lost)) from lost
        if not is_done:
            raise InvalidUpdateVersion(f"{before.topic}-{before.partition} was changed concurrently")
        return self._state(before.key)

    def _state(self, at: PartitionKey) -> PartitionState:
        state = self.view.partitions.get(at)
        if state is None:
            raise UnknownTopicOrPartition(f"no partition {at.partition} in a topic with this id")
        return state

    async def _change(self, at: PartitionKey, rule: Callable[[PartitionState], PartitionState]) -> PartitionState:
        """Apply a change; decides again after each conflict."""
        for _ in range(_MOST_TRIES):
            before = self._state(at)
            after = rule(before)
            if after == before:
                return before
            try:
                return await self._put(before, after)
            except InvalidUpdateVersion:
                continue
        raise InvalidUpdateVersion("too many conflicting updates")

    async def alter_reassignments(self, targets: Mapping[PartitionKey, Sequence[int] | None]) -> None:
        for at, target in targets.items():
            if target is None:
                await self._change(at, lambda state: reassignment.cancel(state, self.view.brokers))
            else:
                wanted = tuple(target)
                await self._change(at, lambda state, to=wanted: reassignment.begin(state, to, self.view.brokers))  # type: ignore[misc]

    async def elect_leader(self, at: PartitionKey, *, unclean: bool = False) -> PartitionState:
        rule = election.elect_any if unclean else election.prefer
        return await self._change(at, lambda state: rule(state, self.view.brokers))

    async def until_led(self, topic_id: TopicId, partitions: int, timeout_ms: int) -> None:
        """Wait until the view has a leader for every partition; raises RequestTimedOut."""
        keys = [PartitionKey(topic_id, index) for index in range(partitions)]

        def are_led() -> bool:
            states = self.view.partitions
            return all(key in states and states[key].leader in self.view.brokers for key in keys)

        changed = asyncio.Event()

        def wake(_: ViewChange) -> None:
            changed.set()

        self._listeners.append(wake)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not are_led():
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            raise RequestTimedOut("created, but some partitions have no leader yet") from None
        finally:
            self._listeners.remove(wake)
