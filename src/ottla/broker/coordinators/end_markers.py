"""Writing the end markers of transactions."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.core.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.core.ids import TopicPartition
    from ottla.records.control import EndMarker

_logger: Final = logging.getLogger(__name__)

_HAS_HEARD_OF_LATER: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class MarkersPending(ApiError):
    """Raised while some partitions do not have their marker yet."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


async def write_end_markers(
    broker: Broker, producer: tuple[int, int], marker: EndMarker, places: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Append the marker to partitions that this broker leads, wait until it is safe, and return the results."""
    errors = {}
    unsafe = {}
    for at in places:
        try:
            partition = broker.topics.partition(at.topic, at.partition)
            offset = _append(broker, partition, producer, marker)
        except ApiError as refused:
            errors[at] = ErrorCode(refused.code)
            continue
        errors[at] = ErrorCode.NONE
        if not partition.is_safe(offset):
            unsafe[at] = partition.until_safe(offset)
    if unsafe:
        for at, result in zip(unsafe, await asyncio.gather(*unsafe.values(), return_exceptions=True), strict=True):
            if isinstance(result, ApiError):
                errors[at] = ErrorCode(result.code)
            elif isinstance(result, BaseException):
                raise result
    return errors


def _append(broker: Broker, partition: Partition, producer: tuple[int, int], marker: EndMarker) -> int:
    """Append the marker; returns its offset."""
    partition.check_can_append()
    appended = partition.append_end_marker(producer, marker)
    if partition.at.topic == CONSUMER_OFFSETS:
        broker.groups.transaction_ended(partition, producer[0], is_commit=marker.is_commit)
    return appended.last_offset


class MarkerDelivery:
    """Sends the markers of a transaction to the leaders of its partitions."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def deliver(self, untold: set[TopicPartition], producer: tuple[int, int], marker: EndMarker) -> None:
        """Remove from `untold` the partitions that got their marker; raises MarkersPending if any are left."""
        # A deleted partition no longer has records of the transaction.
        untold -= {at for at in untold if not self._broker.topics.exists(at)}
        results: dict[TopicPartition, ErrorCode] = {}
        asked = [self._tell(node, places, producer, marker) for node, places in self._by_leader(untold).items()]
        for part in [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked):
            results |= part
        for at, error in results.items():
            if error in _HAS_HEARD_OF_LATER:
                _logger.warning("%s: skipping the end marker, a later transaction has started: %s", at, error.name)
            if error in _HAS_HEARD_OF_LATER or error is ErrorCode.NONE:
                untold.discard(at)
        if untold:
            why = (f"{at}: {results.get(at, ErrorCode.LEADER_NOT_AVAILABLE).name}" for at in sorted(untold))
            raise MarkersPending(", ".join(why))

    def _by_leader(self, places: Collection[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Group partitions by leader; partitions without a leader are omitted."""
        found: dict[int, list[TopicPartition]] = {}
        for at in sorted(places):
            placed = self._broker.topology.placed(self._broker.topics.by_name[at.topic], at.partition)
            if placed.error_code is ErrorCode.NONE:
                found.setdefault(placed.leader, []).append(at)
        return found

    async def _tell(
        self, node: int, places: Collection[TopicPartition], producer: tuple[int, int], marker: EndMarker
    ) -> dict[TopicPartition, ErrorCode]:
        if node == self._broker.config.node_id:
            return await write_end_markers(self._broker, producer, marker, places)
        try:
            return await self._broker.transactions.peer_requests.write_markers(node, producer, marker, places)
        except ApiError as unreachable:
            return dict.fromkeys(places, ErrorCode(unreachable.code))
