"""Adopts partitions without a catalog entry: from Apache Kafka, or after the catalog was lost."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.replaying import batches_of
from ottla.broker.topics import TRANSACTION_STATE
from ottla.core.errors import ApiError, ProtocolError
from ottla.records.reader import RecordReader
from ottla.transactions.records import decode_key, decode_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.partition import Partition
    from ottla.broker.topics import Topics
    from ottla.storage.catalog.catalog import Catalog

_logger: Final = logging.getLogger(__name__)


def skip_used_producer_ids(topics: Topics, catalog: Catalog) -> None:
    """Skip producer ids that a log contains: new batches with them would look like duplicates."""
    highest = -1
    for partition in topics.partitions_here():
        try:
            used = _used_in(partition)
            highest = max([highest, *used])
        except ApiError as unreadable:
            _logger.error("%s: could not search for producer ids: %s", partition.at, unreadable)
    if highest >= 0:
        catalog.next_producer_ids(highest + 1)


def _used_in(partition: Partition) -> Iterator[int]:
    yield from partition.log.producers.producers
    if partition.at.topic == TRANSACTION_STATE:
        for _, batch in batches_of(partition):
            for record in RecordReader(batch):
                yield from _named_in(record.key or b"", record.value)


def _named_in(key: bytes, value: bytes | None) -> Iterator[int]:
    try:
        if decode_key(key) is not None and value is not None:
            yield decode_value(value).producer_id
    except ProtocolError:
        return
