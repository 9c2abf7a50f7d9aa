"""Telling partitions how a transaction ended."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.core.errors import InvalidProducerEpoch, TransactionCoordinatorFenced, UnknownTopicOrPartition

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.core.ids import TopicPartition
    from ottla.records.control import EndMarker

_logger: Final = logging.getLogger(__name__)

_ALL: Final = -1
_SOME_BYTES: Final = 1
"""Enough for followers that wait for more."""


def write_end_marker(broker: Broker, partition: Partition, producer: tuple[int, int], marker: EndMarker) -> int:
    """Append it, and let those know who wait for it; its offset."""
    if partition.replica is not None:
        partition.replica.check_can_append(_ALL)
    appended = partition.log.append_end_marker(*producer, marker, partition.leader_epoch)
    if partition.at.topic == CONSUMER_OFFSETS:
        broker.groups.transaction_ended(partition, producer[0], is_commit=marker.is_commit)
    if partition.replica is not None:
        partition.replica.appended(_SOME_BYTES)
    # How much can be read now that could not before is not known here.
    for wait in tuple(partition.waits):
        wait.end()
    return appended.last_offset


def tell(
    broker: Broker, at: TopicPartition, producer: tuple[int, int], marker: EndMarker
) -> tuple[Partition, int] | None:
    """Append the marker to a partition of the transaction; None if it has no need of it."""
    try:
        partition = broker.topics.partition(at.topic, at.partition)
        return partition, write_end_marker(broker, partition, producer, marker)
    except UnknownTopicOrPartition:
        # It was deleted, and what the transaction wrote to it went with it.
        return None
    except (InvalidProducerEpoch, TransactionCoordinatorFenced) as fenced:
        _logger.warning("%s has heard of a later transaction already: %s", at, fenced)
        return None
