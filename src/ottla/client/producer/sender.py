"""Sends each partition's batches to its leader when they are due.

Partitions are checked on events: a batch is started, full or awaited, a response arrives, a timer
fires, metadata changes. A check ends with the partition at its leader's pusher, with a
time for the next check, or with nothing to do until the next event.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import threading
from itertools import count, islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ottla.client.bundling import BundleRule
from ottla.client.errors import ClientClosed, ClientError, broker_error
from ottla.client.producer.accumulator import Accumulator, Filling, TopicBuffers
from ottla.client.producer.batch import Identity, Refused
from ottla.client.producer.failures import UnseenFailures
from ottla.client.producer.partition_queue import PartitionQueue, QueueRules
from ottla.client.producer.partitioner import StickyChoice
from ottla.client.producer.push import Pusher
from ottla.client.producer.transactions import Transactions
from ottla.client.retries import RetryBudget
from ottla.client.view import NO_LEADER
from ottla.core.errors import ErrorCode
from ottla.records.compression import Compression
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

if TYPE_CHECKING:
    from ottla.client.config import ProducerConfig
    from ottla.client.producer.batch import Batch
    from ottla.client.router import Router
    from ottla.client.serializers import Serializer
    from ottla.client.view import TopicView

    Serializers = tuple[Serializer[Any] | None, Serializer[Any] | None]

_log: Final = logging.getLogger(__name__)
_SOON_S: Final = 0.001


class Sender:
    def __init__(self, router: Router, config: ProducerConfig, serializers: Serializers = (None, None)) -> None:
        self.router = router
        self.config = config
        self.request_timeout_s = router.config.request_timeout_ms / 1000
        self.accumulator = Accumulator(
            threading.Lock(),
            self._wake,
            Compression[config.compression.upper()],
            config.compression_level,
            serializers,
        )
        self.topics: dict[str, TopicBuffers] = self.accumulator.topics
        self.failures = UnseenFailures()
        self.has_full_batch = False
        """Whether a full batch is waiting, so that the event loop should run."""
        self._with_storage_errors: set[PartitionQueue] = set()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._rules = _queue_rules(config)
        self.transactions: Transactions | None = None
        if config.transactional_id is not None:
            self.transactions = Transactions(self, config.transactional_id, config.transaction_timeout_ms)
        self._bundle_rule = BundleRule(
            router.config.pusher_bundle_min_requests, router.config.pusher_bundle_max_wait_ms / 1000
        )
        self.sticky_choice = StickyChoice(self._led_partitions)
        self._pushers: dict[int, Pusher] = {}
        self._woken: dict[PartitionQueue, None] = {}
        self._looks: list[tuple[float, int, PartitionQueue]] = []
        self._look_ids = count()
        self._look_timer: asyncio.TimerHandle | None = None
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._identity: Identity | None = None
        self._identifying: asyncio.Task[None] | None = None
        self._room_waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._unsubscribe = router.subscribe_to_changes(self._view_changed)

    def refuse_if_closed(self) -> None:
        if self.accumulator.is_closed:
            raise ClientClosed("the producer is closed; create a new one")

    async def close(self) -> None:
        self._unsubscribe()
        for timer in (self._look_timer, self._expiry_timer):
            if timer is not None:
                timer.cancel()
        if self._identifying is not None:
            self._identifying.cancel()
            await asyncio.gather(self._identifying, return_exceptions=True)
        for pusher in self._pushers.values():
            await pusher.close()
        self._tell_waiters(*self._room_waiters)

    def queues(self) -> list[PartitionQueue]:
        return [filling.queue for buffers in self.topics.values() for filling in buffers.fillings]

    # Topics and buffers

    def learn_topic(self, view: TopicView) -> TopicBuffers:
        """Create a queue for each of the topic's partitions, whose number may have grown."""
        buffers = self.topics.get(view.name)
        if buffers is None:
            buffers = TopicBuffers(view.name, self.sticky_choice, self.config.partitioner)
            self.topics[view.name] = buffers
        for partition in range(len(buffers.fillings), len(view.partitions)):
            filling = Filling(buffers, partition, self.config.producer_max_bytes, self.config.producer_queue_buffers)
            filling.queue = PartitionQueue(filling, self.accumulator, self._rules, self._batch_is_done)
            buffers.fillings.append(filling)
        buffers.count = len(view.partitions) or buffers.count
        return buffers

    def _led_partitions(self, topic: str) -> list[int]:
        view = self.router.view.topics.get(topic)
        return [index for index, part in view.partitions.items() if part.leader != NO_LEADER] if view else []

    async def room(self, topic: str) -> None:
        """Wait until some batch of this topic is done."""
        waiter = self._loop.create_future()
        self._room_waiters.setdefault(topic, []).append(waiter)
        await waiter

    def _tell_waiters(self, *topics: str) -> None:
        for topic in topics:
            for waiter in self._room_waiters.pop(topic, ()):
                if not waiter.done():
                    waiter.set_result(None)

    def _batch_is_done(self, batch: Batch) -> None:
        if isinstance(batch.outcome, Refused):
            self.failures.add(batch)
            if self.transactions is not None:
                self.transactions.failed(batch.outcome.error)
            elif batch.count > batch.awaited:
                where = f"{batch.topic}-{batch.partition}"
                _log.error("could not deliver %d records to %s: %s", batch.count, where, batch.outcome.error)
        if self._room_waiters:
            self._tell_waiters(batch.topic)

    # Checking partitions

    def _wake(self, filling: Filling) -> None:
        """Called by the accumulator, from any thread."""
        queue: PartitionQueue = filling.queue
        if threading.get_ident() == self._thread:
            self.has_full_batch |= bool(filling.sealed)
            self.look_soon(queue)
        else:
            self._loop.call_soon_threadsafe(self.look_soon, queue)

    def look_soon(self, queue: PartitionQueue) -> None:
        """Check it in the next loop iteration."""
        if not self._woken:
            self._loop.call_soon(self._look_at_woken)
        self._woken[queue] = None

    def _look_at_woken(self) -> None:
        woken, self._woken = self._woken, {}
        for queue in woken:
            self.look(queue)
        for pusher in self._pushers.values():
            pusher.send_at_once()
        if self._expiry_timer is None:
            self._expire_in(self._rules.delivery_timeout_s)

    def look(self, queue: PartitionQueue) -> None:
        """Check the partition and act."""
        if self.transactions is not None and self.transactions.dropping is not None:
            queue.drop_waiting(self.transactions.dropping)
        due = queue.due_at()
        if due is None:
            return
        if due > monotonic():
            self._look_at(queue, due)
            return
        leader = self.router.leader(queue.topic, queue.partition)
        if leader == NO_LEADER:
            self.router.mark_stale()
            self.rest(queue)
            self._look_at(queue, queue.not_before)
            return
        pusher = self._pushers.get(leader)
        if pusher is None:
            pusher = self._pushers[leader] = Pusher(leader, self, self._bundle_rule)
        pusher.add(queue)

    def _look_at(self, queue: PartitionQueue, at: float) -> None:
        if queue.looked_at is not None and queue.looked_at <= at:
            return  # an earlier check is scheduled
        queue.looked_at = at
        heapq.heappush(self._looks, (at, next(self._look_ids), queue))
        if self._looks[0][2] is queue:
            self._set_look_timer()

    def _set_look_timer(self) -> None:
        if self._look_timer is not None:
            self._look_timer.cancel()
        delay_s = max(0.0, self._looks[0][0] - monotonic())
        self._look_timer = self._loop.call_later(delay_s + _SOON_S, self._look_at_due)

    def _look_at_due(self) -> None:
        self._look_timer = None
        now = monotonic()
        while self._looks and self._looks[0][0] <= now:
            at, _, queue = heapq.heappop(self._looks)
            if queue.looked_at == at:
                queue.looked_at = None
                self.look(queue)
        if self._looks:
            self._set_look_timer()

    def rest(self, queue: PartitionQueue) -> None:
        """Back off after a failure, longer each time."""
        queue.failed(monotonic() + self.router.backoff.delay_s(queue.failures + 1))

    def tell_storage_error(self, queue: PartitionQueue, error: ClientError) -> None:
        """Log the error once per partition: retries may go on for minutes."""
        if queue not in self._with_storage_errors:
            self._with_storage_errors.add(queue)
            limit_s = self.config.delivery_timeout_ms / 1000
            _log.warning("%s: the broker cannot write (%s); retrying for up to %.0f s", queue, error, limit_s)

    def _view_changed(self) -> None:
        for name, buffers in self.topics.items():
            view = self.router.view.topics.get(name)
            if view is not None and len(view.partitions) > buffers.count:
                self.learn_topic(view)
        for _, _, queue in self._looks:
            queue.not_before = 0.0  # the new leader may not have failed
            self.look_soon(queue)
        for pusher in self._pushers.values():
            pusher.let_go()

    # Called by pushers

    def is_led_by(self, queue: PartitionQueue, node_id: int) -> bool:
        return self.router.leader(queue.topic, queue.partition) == node_id

    def may_send(self, queue: PartitionQueue, node_id: int, now: float) -> bool:
        """Whether this broker still leads the partition and a batch is due."""
        if not self.is_led_by(queue, node_id):
            self.look_soon(queue)
            return False
        queue.expire(now)
        due = queue.due_at()
        if due is None or due > now:
            self.look_soon(queue)
            return False
        if self.transactions is not None:
            return self.transactions.may_send(queue)
        return not queue.needs_identity or self._identify(queue)

    def count_unsent(self, node_id: int, at_most: int) -> int:
        """How many partitions led by this broker have batches to send, up to a maximum."""
        leader = self.router.leader
        unsent = (1 for queue in self.queues() if queue.has_unsent and leader(queue.topic, queue.partition) == node_id)
        return sum(islice(unsent, at_most))

    # Expiry

    def _expire_in(self, delay_s: float) -> None:
        self._expiry_timer = self._loop.call_later(delay_s + _SOON_S, self._expire)

    def _expire(self) -> None:
        self._expiry_timer = None
        now = monotonic()
        queues = self.queues()
        for queue in queues:
            queue.expire(now)
        next_at = min((at for queue in queues if (at := queue.expires_at()) is not None), default=None)
        if next_at is not None:
            self._expire_in(next_at - now)

    # Producer ids

    def _identify(self, queue: PartitionQueue) -> bool:
        """Give the partition an unused producer id and epoch; False if one must be requested first."""
        if self._identity is not None and self._identity.producer_id != queue.identity.producer_id:
            queue.identify(self._identity)
            return True
        self._identity = None
        if self._identifying is None:
            self._identifying = asyncio.create_task(self._get_identity())
        return False

    async def identify(self) -> None:
        """Get a producer id. A starting broker may need a while."""
        if self.transactions is not None:
            await self.transactions.start()
            return
        retries = RetryBudget(self.router)
        while True:
            response = await self.router.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1))
            if not response.error_code:
                break
            # Kafka's rule: write access to any topic is sufficient.
            is_denied = response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            why = "this user may write to no topic" if is_denied else None
            failed = broker_error(response.error_code, "a producer id, which idempotence needs", why)
            if not failed.is_retriable or await retries.is_over():
                raise failed
        self._identity = Identity(response.producer_id, response.producer_epoch)

    async def _get_identity(self) -> None:
        try:
            await self.identify()
        except ClientError as failed:
            for queue in self.queues():
                queue.last_error = failed
                if queue.needs_identity and not failed.is_retriable:
                    queue.abandon(failed)
                elif queue.needs_identity:
                    self.rest(queue)
        finally:
            self._identifying = None
            for queue in self.queues():
                self.look_soon(queue)


def _queue_rules(config: ProducerConfig) -> QueueRules:
    return QueueRules(
        linger_s=config.producer_batch_timeout_ms / 1000,
        delivery_timeout_s=config.delivery_timeout_ms / 1000,
        max_in_flight=config.max_in_flight,
        is_idempotent=config.idempotence,
        is_transactional=config.transactional_id is not None,
    )
