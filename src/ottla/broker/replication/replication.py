"""All replicas of this broker: their roles by the cluster's view, and role changes."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.broker.peers.other_nodes import OtherNodes
from ottla.broker.replication.fetcher import Fetcher
from ottla.broker.replication.high_watermarks import HighWatermarks
from ottla.broker.replication.isr_changes import IsrChanges
from ottla.broker.replication.node_security import node_security
from ottla.broker.replication.offline import OfflineReplicas
from ottla.broker.replication.replica import Replica
from ottla.broker.replication.throttling import Throttling
from ottla.broker.requests.turns import Turns
from ottla.cluster.election import has_its_folder
from ottla.cluster.leaderless import leaderless
from ottla.cluster.replication.leading import NO_EPOCH
from ottla.cluster.state import NO_NODE, PartitionKey
from ottla.core.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.topics import TopicState
    from ottla.cluster.leaderless import Leaderless
    from ottla.cluster.replication.config import ReplicationConfig
    from ottla.cluster.state import BrokerInfo, Cluster, PartitionState, ViewChange
    from ottla.core.ids import TopicId

_logger: Final = logging.getLogger(__name__)

_TICK_S: Final = 0.25


class Replication:
    def __init__(self, broker: Broker, cluster: Cluster, config: ReplicationConfig) -> None:
        self.config = config
        self.cluster = cluster
        self.node_id = cluster.node_id
        self.broker = broker
        self.present = _epochs(cluster.view.brokers)
        self.replicas: dict[PartitionKey, Replica] = {}
        self._fetchers: dict[int, Fetcher] = {}
        self._isr_changes = IsrChanges(cluster)
        self.offline = OfflineReplicas(self)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_registered = False
        self._is_stopped = False
        self.security = node_security(broker.settings.cluster)
        self.tls = None if self.security is None else self.security.tls_context()
        self.others = OtherNodes(self)
        self.throttling = Throttling(broker, cluster.node_id)
        self._high_watermarks = HighWatermarks(broker.data_dir.path, self._topic_id)

    @property
    def is_fenced(self) -> bool:
        return self.cluster.is_fenced

    def now_ms(self) -> int:
        return self.broker.steady_clock.now_ms()

    @property
    def broker_epoch(self) -> int:
        """Unknown before this process is registered. With the epoch of an earlier process of this node, fetches could
        add it to an ISR, which it then leaves because of the losses that it found at its start.
        """
        me = self.cluster.view.brokers.get(self.node_id) if self._is_registered else None
        return NO_EPOCH if me is None else me.epoch

    def is_refused_by(self, node: int) -> bool:
        """Whether a registered node refuses connections. Only used to tell clients to retry."""
        fetcher = self._fetchers.get(node)
        return fetcher is not None and fetcher.is_refused

    # Starting and stopping

    async def start(self) -> None:
        """Called before this node registers: partitions that it leads in the current view were led by a previous
        process.
        """
        topics = self.broker.topics
        topics.attach = self.attach
        for topic in topics.by_name.values():
            for partition in topic.partitions:
                self.attach(topic, partition)
        if not self.broker.data_dir.was_clean:
            for state in self.cluster.view.led_by(self.node_id):
                if (replica := self.replicas.get(state.key)) is not None:
                    replica.refused_epoch = state.leader_epoch
        await self._open_logs()
        self.cluster.listen(self._changed)
        self.cluster.on_session_lost(self._session_lost)
        self._apply(self.cluster.view.partitions.values())
        self._tasks = [asyncio.create_task(self._tick()), asyncio.create_task(self._checkpoint_periodically())]

    async def _open_logs(self) -> None:
        """Open the logs now, rather than all at once when this node is elected or follows."""
        turns = Turns()
        for state in self.cluster.view.held_by(self.node_id):
            replica = self.replicas.get(state.key)
            if replica is not None:
                replica.state = state
                with suppress(ApiError):  # it is offline then, and retried
                    replica.partition.open()
                if turns.are_over():
                    await asyncio.sleep(0)

    async def stop(self) -> None:
        self._is_stopped = True
        for task in self._tasks:
            task.cancel()
        for replica in self.replicas.values():
            replica.step_down()
        await asyncio.gather(
            *(fetcher.stop() for fetcher in self._fetchers.values()), *self._tasks, return_exceptions=True
        )
        await self._isr_changes.stop()
        await self.offline.stop()
        self.others.close()
        await self._checkpoint()

    # Roles

    def attach(self, topic: TopicState, partition: Partition) -> None:
        """Attach a new partition of the broker. It has no replica here until the view assigns one."""
        key = PartitionKey(topic.entry.id, partition.at.partition)
        self._replica(partition, key)
        state = self.cluster.view.partitions.get(key)
        if state is not None and self._tasks:
            self._apply([state])

    def replica(self, state: PartitionState) -> Replica:
        partition = self.broker.topics.partition_by_id(state.topic_id.raw, state.partition)
        return self._replica(partition, state.key)

    def replica_of(self, partition: Partition) -> Replica | None:
        topic = self.broker.topics.by_name.get(partition.at.topic)
        return None if topic is None else self.replicas.get(PartitionKey(topic.entry.id, partition.at.partition))

    def _topic_id(self, name: str) -> TopicId | None:
        topic = self.broker.topics.by_name.get(name)
        return None if topic is None else topic.entry.id

    def _replica(self, partition: Partition, key: PartitionKey) -> Replica:
        replica = self.replicas.get(key)
        if replica is None or replica.partition is not partition:
            replica = Replica(partition, key, self, self._high_watermarks.of(partition.at))
            self.replicas[key] = replica
        return replica

    def _changed(self, change: ViewChange) -> None:
        self.present = _epochs(change.after.brokers)
        if change.before.brokers != change.after.brokers:
            for replica in self.replicas.values():
                if replica.leading is not None:
                    replica.leading.present = self.present
            for fetcher in self._fetchers.values():
                fetcher.retry()
            self.offline.leave_all_isrs()
        states = (change.after.partitions.get(key) for key in change.partitions)
        for key in change.partitions:
            if key not in change.after.partitions:
                self._gone(key)
        self._apply(state for state in states if state is not None)

    def _apply(self, states: Iterable[PartitionState]) -> None:
        for state in states:
            try:
                replica = self.replica(state)
            except ApiError as refused:
                _logger.warning("%s-%d: could not apply its role: %s", state.topic, state.partition, refused)
                continue
            try:
                self._take_role(replica, state)
            except ApiError as refused:
                # A log that cannot be opened was already handled.
                _logger.info("%s: could not apply its role: %s", replica.partition.at, refused)

    def is_current(self, replica: Replica) -> bool:
        return not self._is_stopped and self.replicas.get(replica.key) is replica

    def resume(self, replica: Replica) -> None:
        """Return a replica to service: its log is usable again."""
        state = self.cluster.view.partitions.get(replica.key)
        if state is not None:
            self._apply([state])

    def _take_role(self, replica: Replica, state: PartitionState) -> None:
        if self._is_stopped:
            return
        known = replica.state
        if replica.offline is not None and self.node_id in state.replicas:
            replica.become_follower(state)
            self.offline.leave_isr(replica)
        elif self._may_lead(replica, state):
            self.unfollow(replica)
            led = replica.led
            if led is None or known is None or known.leader_epoch != state.leader_epoch:
                replica.become_leader(state, self.now_ms())
                _logger.info("%s: became leader in epoch %d", replica.partition.at, state.leader_epoch)
            else:
                replica.state = state
                led.leading.changed(state)
                led.advance()
        else:
            replica.become_follower(state)
            self._follow_or_not(replica, state)

    def _follow_or_not(self, replica: Replica, state: PartitionState) -> None:
        if self.node_id not in state.replicas:
            self.unfollow(replica)
            # Without a leader no replica is known to have the committed records, and this may be the only copy.
            if state.leader != NO_NODE:
                self._remove(replica)
        elif state.leader not in (NO_NODE, self.node_id):
            self._follow(replica)
        else:
            self.unfollow(replica)

    def _may_lead(self, replica: Replica, state: PartitionState) -> bool:
        return (
            state.leader == self.node_id
            and state.leader_epoch != replica.refused_epoch
            and has_its_folder(state, self.node_id, self.cluster.folder_id)
        )

    def forget(self, topic: TopicState) -> None:
        """Handle the deletion of a topic whose logs are about to be deleted."""
        for partition in topic.partitions:
            self._gone(PartitionKey(topic.entry.id, partition.at.partition))
            self._high_watermarks.forget(partition.at)

    def _gone(self, key: PartitionKey) -> None:
        replica = self.replicas.pop(key, None)
        if replica is not None:
            self.unfollow(replica)
            self.offline.forget(replica)
            replica.step_down()

    def _remove(self, replica: Replica) -> None:
        """Remove the replica of a partition that was moved to other nodes."""
        self.offline.forget(replica)
        partition = replica.partition
        if partition.is_open or (self.broker.data_dir.path / str(partition.at)).exists():
            _logger.info("%s: deleting the log: this broker is no longer a replica", partition.at)
            partition.close()
            self.broker.flusher.forget(partition)
            self.broker.maintenance.remove(self.broker.data_dir.delete_partitions([partition.at]))
            self._high_watermarks.forget(partition.at)

    # Following

    def _follow(self, replica: Replica) -> None:
        leader = replica.leader
        for node, fetcher in self._fetchers.items():
            if node != leader:
                fetcher.remove(replica)
        if leader not in self._fetchers:
            self._fetchers[leader] = Fetcher(self, leader)
        self._fetchers[leader].add(replica)

    def unfollow(self, replica: Replica) -> None:
        for fetcher in self._fetchers.values():
            fetcher.remove(replica)

    # Leading

    def propose_isr(self, replica: Replica, isr: frozenset[int]) -> None:
        self._isr_changes.propose(replica, isr)

    def _session_lost(self) -> None:
        """Handle a lost session: other brokers may be leaders now, so nothing more is reported as committed."""
        for replica in self.replicas.values():
            if replica.led is not None:
                replica.led.fail_parked()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        rounds = max(1, int(self.config.replica_lag_time_max_ms / 2 / 1000 / _TICK_S))
        number = 0
        while True:
            await asyncio.sleep(_TICK_S)
            number += 1
            for replica in tuple(self.replicas.values()):
                if (led := replica.led) is not None:
                    led.expire_parked(loop.time())
                    if number % rounds == 0:
                        led.shrink_isr()
            self.offline.open_due(loop.time())

    def lost(self) -> list[PartitionKey]:
        """Partitions whose folders were missing at the start although they had records."""
        by_name = self.broker.topics.by_name
        return [
            PartitionKey(by_name[at.topic].entry.id, at.partition)
            for at in self._high_watermarks.lost
            if at.topic in by_name
        ]

    def damaged(self) -> list[PartitionKey]:
        """Local partitions with other replicas whose logs were damaged while no broker was running."""
        return [
            state.key
            for state in self.cluster.view.held_by(self.node_id)
            if len(state.replicas) > 1
            and (replica := self.replicas.get(state.key)) is not None
            and replica.partition.is_open
            and self._is_damaged(replica)
        ]

    def registered(self) -> None:
        """Handle the registration of this process: ISRs no longer rely on the records that local logs lack."""
        self._is_registered = True
        for replica in self.replicas.values():
            if replica.partition.is_open and replica.partition.log.lacks_records:
                with suppress(OSError):  # then the replica leaves the ISR once more after the next start
                    replica.partition.log.forget_lack()

    def _is_damaged(self, replica: Replica) -> bool:
        log = replica.partition.log
        return log.lacks_records or log.next_offset < self._high_watermarks.of(replica.partition.at)

    def unsynced(self) -> list[PartitionKey]:
        """Local partitions whose records are acknowledged before they are synced."""
        by_id = self.broker.topics.by_id
        held = (state.key for state in self.cluster.view.held_by(self.node_id) if state.topic_id.raw in by_id)
        return [key for key in held if by_id[key.topic_id.raw].config.log.flush != "ack"]

    def leaderless(self) -> list[Leaderless]:
        """The partitions of the cluster without a leader, and why."""
        return list(leaderless(self.cluster.view))

    # The checkpoint

    async def _checkpoint_periodically(self) -> None:
        while True:
            await asyncio.sleep(self.config.high_watermark_checkpoint_interval_ms / 1000)
            await self._checkpoint()

    async def _checkpoint(self) -> None:
        write = self._high_watermarks.note(
            {
                replica.partition.at: replica.high_watermark
                for replica in self.replicas.values()
                if replica.is_here and replica.partition.is_open
            }
        )
        await asyncio.get_running_loop().run_in_executor(None, write)


def _epochs(brokers: Mapping[int, BrokerInfo]) -> dict[int, int]:
    return {node: broker.epoch for node, broker in brokers.items()}
