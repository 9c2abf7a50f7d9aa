"""One broker's produce requests: due batches of many partitions bundled into each, several in flight at once.

Nothing here polls. A partition with a due batch is added; the request is sent in the next loop iteration, or
according to the bundling rule; the response gives each batch its outcome.
"""

from __future__ import annotations

import asyncio
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ottla.client.connections import Purpose
from ottla.client.errors import ClientError, ConnectionLost, broker_error
from ottla.core.errors import ErrorCode
from ottla.wire import apis
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ottla.client.bundling import BundleRule
    from ottla.client.connection import Connection
    from ottla.client.producer.batch import Batch
    from ottla.client.producer.partition_queue import PartitionQueue
    from ottla.client.producer.sender import Sender
    from ottla.wire.messages.produce import PartitionProduceResponse

_BY_NAME: Final = 12
"""The last version with topic names, which survive re-creation of a topic."""
_MOST_REQUEST_BYTES: Final = 16 << 20
"""No further batch is added to a request of this size; brokers reject 100 MiB."""
_SOON_S: Final = 0.001
"""Event loop timers have a resolution of a millisecond."""

_Bundle = list[tuple["PartitionQueue", "Batch"]]


class Pusher:
    def __init__(self, node_id: int, sender: Sender, rule: BundleRule) -> None:
        self.node_id = node_id
        self._sender = sender
        self._config = sender.config
        self._rule = rule
        self._ready: dict[PartitionQueue, None] = {}
        self._first_at = 0.0
        self._is_urgent = False
        self._pump_handle: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._requests_in_flight = 0
        self._connection: Connection | None = None
        self._work: set[asyncio.Task[None]] = set()
        self._connecting: asyncio.Task[None] | None = None

    async def close(self) -> None:
        for handle in (self._pump_handle, self._timer):
            if handle is not None:
                handle.cancel()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def add(self, queue: PartitionQueue) -> None:
        """Add a partition with a due batch."""
        if not self._ready:
            self._first_at = monotonic()
        self._ready[queue] = None
        self._is_urgent |= queue.is_urgent
        self._schedule()

    def let_go(self) -> None:
        """Drop the partitions that another broker leads now: a connection to this one may never succeed."""
        for queue in [each for each in self._ready if not self._sender.is_led_by(each, self.node_id)]:
            del self._ready[queue]
            self._sender.look_soon(queue)

    def send_at_once(self) -> None:
        """Do immediately what would be done in the next loop iteration."""
        if self._pump_handle is not None:
            self._pump_handle.cancel()
            self._pump()

    def _schedule(self) -> None:
        if self._pump_handle is None and self._ready:
            self._pump_handle = asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_handle = None
        if self._connection is None or not self._connection.is_open:
            self._connect()
            return
        while self._ready and self._requests_in_flight < self._config.max_in_flight:
            now = monotonic()
            if not self._is_time(now):
                return
            bundle = self._collect(now)
            if not bundle:
                return
            self._send(self._connection, bundle, now)

    def _is_time(self, now: float) -> bool:
        if self._is_urgent:
            return True
        attached = self._sender.count_unsent(self.node_id, at_most=self._rule.min_requests)
        at = self._rule.send_at(len(self._ready), attached, self._first_at)
        if at <= now:
            return True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(at - now + _SOON_S, self._time_is_up)
        return False

    def _time_is_up(self) -> None:
        self._timer = None
        self._schedule()

    def _collect(self, now: float) -> _Bundle:
        """Collect a batch of each ready partition; a partition with more due batches stays ready for the next
        request.
        """
        bundle: _Bundle = []
        size = 0
        self._is_urgent = False
        for queue in list(self._ready):
            if size >= _MOST_REQUEST_BYTES:
                self._is_urgent = True
                break
            if not self._sender.may_send(queue, self.node_id, now):
                del self._ready[queue]
                continue
            batch = queue.take()
            bundle.append((queue, batch))
            size += len(batch.encode(queue.identity))
            due = queue.due_at()
            if due is None or due > now:
                del self._ready[queue]
            else:
                self._is_urgent |= queue.is_urgent
        return bundle

    # A request and its response

    def _send(self, connection: Connection, bundle: _Bundle, now: float) -> None:
        self._requests_in_flight += 1
        request = self._request(bundle)
        left_s = min(batch.begun_s for _, batch in bundle) + self._config.delivery_timeout_ms / 1000 - now
        timeout_s = max(_SOON_S, min(left_s, self._sender.request_timeout_s))
        try:
            version = connection.version_of(apis.PRODUCE, max_version=self._last_version())
            if self._config.acks == 0:
                connection.post(request, version=version)
                _ = self._start(self._drained(connection, bundle))
            else:
                answer = connection.ask(request, version=version, timeout_s=timeout_s)
                answer.add_done_callback(partial(self._answered, bundle))
        except ClientError as failed:
            self._finish(bundle, failed)

    def _last_version(self) -> int:
        transactions = self._sender.transactions
        return _BY_NAME if transactions is None else transactions.last_produce_version

    def _request(self, bundle: _Bundle) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for queue, batch in bundle:
            data = PartitionProduceData(index=queue.partition, records=batch.encode(queue.identity))
            topics.setdefault(queue.topic, []).append(data)
        return ProduceRequest(
            transactional_id=self._config.transactional_id,
            acks=-1 if self._config.acks == "all" else self._config.acks,
            timeout_ms=self._config.produce_request_timeout_ms,
            topic_data=tuple(TopicProduceData(name=name, partition_data=tuple(data)) for name, data in topics.items()),
        )

    async def _drained(self, connection: Connection, bundle: _Bundle) -> None:
        # There is no response with acks=0: writing to the socket is the only confirmation.
        await connection.drain()
        self._finish(bundle, None if connection.is_open else ConnectionLost("the connection was lost while sending"))

    def _answered(self, bundle: _Bundle, answer: asyncio.Future[ProduceResponse]) -> None:
        if answer.cancelled():
            self._finish(bundle, ConnectionLost("the request was abandoned"))
        elif (failed := answer.exception()) is None:
            self._settle(bundle, answer.result())
        elif isinstance(failed, ClientError):
            self._finish(bundle, failed)
        else:
            raise failed

    def _settle(self, bundle: _Bundle, response: ProduceResponse) -> None:
        results = {
            (topic.name, result.index): result for topic in response.responses for result in topic.partition_responses
        }
        for queue, batch in bundle:
            if batch not in queue.in_flight:
                continue  # failed meanwhile
            result = results.get((queue.topic, queue.partition))
            if result is None:
                queue.came_back(batch, ConnectionLost(f"the broker did not answer for {queue}"))
                self._sender.rest(queue)
            elif result.error_code == ErrorCode.NONE:
                queue.acknowledged(batch, result.base_offset, result.log_append_time_ms)
            else:
                self._refused(queue, batch, result)
        self._request_is_over(bundle)

    def _refused(self, queue: PartitionQueue, batch: Batch, result: PartitionProduceResponse) -> None:
        error = broker_error(result.error_code, str(queue), result.error_message)
        record_errors: dict[int, ClientError] = {
            each.batch_index: broker_error(
                result.error_code, str(queue), each.batch_index_error_message or result.error_message
            )
            for each in result.record_errors
        }
        if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
            self._sender.tell_storage_error(queue, error)
        is_too_large = error.code is ErrorCode.MESSAGE_TOO_LARGE
        if queue.answered_with(batch, error, record_errors) and not is_too_large:
            self._sender.rest(queue)
            self._sender.router.mark_stale()

    def _finish(self, bundle: _Bundle, failed: ClientError | None) -> None:
        """Give all batches of a request the same outcome."""
        for queue, batch in bundle:
            if batch not in queue.in_flight:
                continue
            if failed is None:
                queue.acknowledged(batch, -1, -1)
                continue
            queue.came_back(batch, failed)
            if failed.is_retriable:
                self._sender.rest(queue)
            else:
                queue.abandon(failed)
        if failed is not None:
            self._sender.router.mark_stale()
        self._request_is_over(bundle)

    def _request_is_over(self, bundle: _Bundle) -> None:
        self._requests_in_flight -= 1
        for queue, _ in bundle:
            self._sender.look(queue)
        self._schedule()

    # The connection

    def _connect(self) -> None:
        if self._connecting is None:
            self._connecting = self._start(self._open())

    async def _open(self) -> None:
        try:
            self._connection = await self._sender.router.connection(self.node_id, Purpose.PUSH)
        except ClientError as failed:
            waiting, self._ready = list(self._ready), {}
            for queue in waiting:
                queue.last_error = failed
                if failed.is_retriable:
                    self._sender.rest(queue)
                else:
                    queue.abandon(failed)
            self._sender.router.mark_stale()
            for queue in waiting:
                self._sender.look(queue)
        finally:
            self._connecting = None
            self._schedule()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task
