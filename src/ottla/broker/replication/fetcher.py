"""Fetches partitions from their leader: one connection, one fetch at a time."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.peers.connections import NodeConnections
from ottla.broker.replication.copying import find_back, take_over, truncate_diverging
from ottla.broker.replication.followed_starts import FollowedStarts
from ottla.broker.requests.turns import Turns
from ottla.client.errors import BrokerError, ClientClosed, ClientError, ConnectionRefused
from ottla.cluster.replication.throttle import most_at_once
from ottla.core.errors import ApiError, ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

if TYPE_CHECKING:
    from ottla.broker.replication.replica import Replica
    from ottla.broker.replication.replication import Replication
    from ottla.client.connection import Connection
    from ottla.cluster.state import PartitionKey
    from ottla.wire.messages.fetch import FetchResponse, PartitionData

_logger: Final = logging.getLogger(__name__)

_LOOK_AT_RATES_S: Final = 1.0
"""A raised rate is noticed within this time by a throttled fetch."""
_WHILE_WRITING_MS: Final = 10
_SCRATCH_BYTES: Final = 256 << 10
_PATIENCE_MS: Final = 10_000
"""The extra time after which a silent leader counts as dead."""


class Fetcher:
    def __init__(self, replication: Replication, leader: int) -> None:
        self._replication = replication
        self._leader = leader
        self._replicas: dict[PartitionKey, Replica] = {}
        self._epochs: dict[PartitionKey, int] = {}
        self._delayed_until: dict[PartitionKey, float] = {}
        self._wake = asyncio.Event()
        self._connection: Connection | None = None
        self._is_refused = False
        self._complaint = ""
        self._complaints: dict[PartitionKey, str] = {}
        self._starts = FollowedStarts(replication.broker)
        self._connections = NodeConnections(
            replication,
            f"-fetcher-{leader}",
            connect_ms=_PATIENCE_MS,
            answer_ms=replication.config.replica_fetch_wait_max_ms + _PATIENCE_MS,
            scratch_bytes=_SCRATCH_BYTES,
        )
        self._task = asyncio.create_task(self._run())

    def add(self, replica: Replica) -> None:
        if self._replicas.get(replica.key) is replica and self._epochs[replica.key] == replica.leader_epoch:
            return
        self._replicas[replica.key] = replica
        self._epochs[replica.key] = replica.leader_epoch
        self._delayed_until.pop(replica.key, None)
        self.look_again()

    def remove(self, replica: Replica) -> None:
        if self._replicas.pop(replica.key, None) is not None:
            self._delayed_until.pop(replica.key, None)
            if not self._replicas:
                self._hang_up()

    @property
    def is_refused(self) -> bool:
        """Whether the leader refuses connections. Unknown, thus false, if nothing is fetched from it."""
        return self._is_refused and bool(self._replicas)

    def retry(self) -> None:
        """Retry now: the leader may be back."""
        self._is_refused = False
        self.look_again()

    def look_again(self) -> None:
        """End the pending fetch, which the leader may hold for long: there is something else to fetch."""
        self._wake.set()
        self._hang_up()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._starts.stop()
        self._hang_up()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # The loop

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                if (wait_s := self._wait_s()) is None or wait_s > 0:
                    await self._pause(wait_s)
                    continue
                connection = await self._connected()
                await self._sync()
                self._starts.check(self._due())
                # Collected only now: there may be more to fetch than before the connection was open.
                await self._fetch(connection)
                self._complaint = ""
            except ClientClosed:
                continue  # disconnected, to fetch again
            except (ClientError, ApiError) as failed:
                self._complain(str(failed))
                self._hang_up()
                await self._pause(self._backoff_s)
            except Exception:  # a bug must not end replication
                _logger.exception("fetching from broker %d failed", self._leader)
                self._hang_up()
                await self._pause(self._backoff_s)

    @property
    def _backoff_s(self) -> float:
        return self._replication.config.replica_fetch_backoff_ms / 1000

    def _due(self) -> list[Replica]:
        now_s = asyncio.get_running_loop().time()
        return [replica for replica in self._replicas.values() if self._wait_for_s(replica, now_s) <= 0]

    def _wait_s(self) -> float | None:
        """The time until there is something to fetch; None if that does not depend on time."""
        if self._leader not in self._replication.cluster.view.brokers:
            return None
        now_s = asyncio.get_running_loop().time()
        return min((self._wait_for_s(replica, now_s) for replica in self._replicas.values()), default=None)

    def _wait_for_s(self, replica: Replica, now_s: float) -> float:
        throttled_s = self._replication.throttling.wait_to_fetch_s(replica)
        return max(self._delayed_until.get(replica.key, 0.0) - now_s, min(throttled_s, _LOOK_AT_RATES_S))

    async def _pause(self, most_s: float | None) -> None:
        try:
            async with asyncio.timeout(most_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _connected(self) -> Connection:
        if self._connection is None:
            try:
                self._connection = await self._connections.open(self._leader)
            except ConnectionRefused:
                self._is_refused = True
                raise
            self._is_refused = False
        return self._connection

    def _complain(self, why: str) -> None:
        if self._complaint != why:  # once, not with every retry
            self._complaint = why
            _logger.warning("replication from broker %d failed: %s", self._leader, why)

    # Requests

    async def _fetch(self, connection: Connection) -> None:
        request, epochs = self._request(self._due()), dict(self._epochs)
        if request.topics:
            await self._take(await connection.ask(request), epochs, connection)
        else:
            await self._pause(self._backoff_s)

    async def _sync(self) -> None:
        """Sync logs with `flush = "ack"`: a fetch tells the leader that all records before its offset are synced."""
        unsynced = [replica for replica in self._due() if _is_unsynced(replica)]
        if not unsynced:
            return
        flusher = self._replication.broker.flusher
        flushes = [flusher.durable(replica.partition, replica.log.next_offset - 1) for replica in unsynced]
        for replica, failed in zip(unsynced, await asyncio.gather(*flushes, return_exceptions=True), strict=True):
            if failed is not None:
                self._delay(replica, f"could not sync: {failed}", logging.ERROR)

    def _request(self, asked: list[Replica]) -> FetchRequest:
        config, broker_epoch = self._replication.config, self._replication.broker_epoch
        topics: dict[bytes, list[FetchPartition]] = {}
        for replica in asked:
            wanted = self._wanted(replica)
            if wanted is not None:
                topics.setdefault(replica.key.topic_id.raw, []).append(wanted)
        return FetchRequest(
            replica_state=ReplicaState(replica_id=self._replication.node_id, replica_epoch=broker_epoch),
            max_wait_ms=self._most_wait_ms(),
            min_bytes=1,
            max_bytes=config.replica_fetch_response_max_bytes,
            topics=tuple(FetchTopic(topic_id=raw_id, partitions=tuple(parts)) for raw_id, parts in topics.items()),
        )

    def _wanted(self, replica: Replica) -> FetchPartition | None:
        """The fetch of this partition; None if its log cannot be opened or is not synced, so that other partitions are
        fetched now.
        """
        try:
            log = replica.log
        except ApiError:
            return None
        if replica.offline is not None or log.acknowledged_offset < log.next_offset:
            return None
        return FetchPartition(
            partition=replica.key.partition,
            current_leader_epoch=replica.leader_epoch,
            fetch_offset=log.next_offset,
            last_fetched_epoch=log.epochs.latest,
            log_start_offset=self._starts.durable(replica),
            partition_max_bytes=self._most_bytes(replica),
        )

    def _most_wait_ms(self) -> int:
        """The maximum wait: at most until a throttled partition may be fetched again. Short while log start offsets are
        written: the next fetch reports them.
        """
        if self._starts.are_being_written:
            return _WHILE_WRITING_MS
        waits_s = map(self._replication.throttling.wait_to_fetch_s, self._replicas.values())
        most = self._replication.config.replica_fetch_wait_max_ms
        return int(min([most, *(wait_s * 1000 + 1 for wait_s in waits_s if wait_s)]))

    def _most_bytes(self, replica: Replica) -> int:
        most = self._replication.config.replica_fetch_max_bytes
        rate = self._replication.throttling.follower_rate(replica)
        return most if rate is None else most_at_once(most, rate)

    async def _take(self, answer: FetchResponse, epochs: dict[PartitionKey, int], connection: Connection) -> None:
        turns = Turns()
        by_id = {(key.topic_id.raw, key.partition): key for key in epochs}
        for topic in answer.responses:
            for data in topic.partitions:
                key = by_id.get((topic.topic_id, data.partition_index))
                replica = None if key is None else self._replicas.get(key)
                # The partition may have another leader by now, possibly this broker.
                if key is None or replica is None or self._epochs[key] != epochs[key] or replica.leading is not None:
                    continue
                self._replication.throttling.fetched(replica, len(data.records or b""))
                await self._take_partition(replica, data, connection)
                if data.records and key in self._replicas:
                    # Moved to the end, so that a full response does not always have the same partitions.
                    self._replicas[key] = self._replicas.pop(key)
                if turns.are_over():
                    await asyncio.sleep(0)

    async def _take_partition(self, replica: Replica, data: PartitionData, connection: Connection) -> None:
        try:
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await find_back(replica, connection, self._replication.node_id)
            elif data.error_code:
                # Usually one of the brokers has not seen a new leader yet.
                self._delay(replica, f"the leader answers {ErrorCode(data.error_code).name}")
            elif data.diverging_epoch.epoch >= 0:
                truncate_diverging(replica, data.diverging_epoch)
            else:
                take_over(replica, data)
        except (ApiError, BrokerError) as refused:
            self._delay(replica, str(refused), logging.ERROR)
        except ClientError:
            raise  # the connection is lost
        except Exception as failed:  # other partitions continue
            _logger.exception("%s: replication from broker %d failed", replica.partition.at, self._leader)
            self._delay(replica, repr(failed), logging.ERROR)
        else:
            if not data.error_code:
                self._complaints.pop(replica.key, None)

    def _delay(self, replica: Replica, why: str, level: int = logging.INFO) -> None:
        self._delayed_until[replica.key] = asyncio.get_running_loop().time() + self._backoff_s
        if self._complaints.get(replica.key) != why:  # once, not with every retry
            self._complaints[replica.key] = why
            _logger.log(level, "%s: not replicating from broker %d: %s", replica.partition.at, self._leader, why)


def _is_unsynced(replica: Replica) -> bool:
    try:
        log = replica.log
    except ApiError:
        return False  # it is offline
    return log.acknowledged_offset < log.next_offset
