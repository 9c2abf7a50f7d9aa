"""Producer state on disk: Kafka's `ProducerSnapshot` version 1, named after its offset."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from ottla.records.checksum import crc32c
from ottla.storage.files import SNAPSHOT, file_name, offset_in_name, replace_file
from ottla.storage.producers.state import NO_SEQUENCE, ProducedBatch, Producer, ProducerStates

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_HEAD: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_VERSION: Final = 1
_SEQUENCE_MASK: Final = 0x7FFFFFFF


class BadSnapshot(ValueError):
    """A malformed snapshot. The state can be rebuilt from the log."""


def encode_snapshot(states: ProducerStates) -> bytes:
    entries = [_ENTRY.pack(*_fields(producer_id, producer)) for producer_id, producer in states.producers.items()]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> ProducerStates:
    if len(data) < _HEAD.size + _COUNT.size:
        raise BadSnapshot("too short to be a producer snapshot")
    version, crc = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    (count,) = _COUNT.unpack_from(body)
    if version != _VERSION or crc != crc32c(body) or len(body) != _COUNT.size + count * _ENTRY.size:
        raise BadSnapshot("wrong version, checksum or length")
    return ProducerStates({fields[0]: _producer(fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])})


def _fields(producer_id: int, producer: Producer) -> tuple[int, ...]:
    # Only the last batch is stored: after a restart an older duplicate gets an out-of-order error, as in Kafka.
    last = producer.batches[-1] if producer.batches else ProducedBatch(-1, NO_SEQUENCE, -1, 0, -1)
    return (
        producer_id,
        producer.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.transaction_start,
    )


def _producer(fields: tuple[int, ...]) -> Producer:
    _, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, start = fields
    producer = Producer(epoch, last_timestamp=timestamp, coordinator_epoch=coordinator_epoch, is_restored=True)
    producer.transaction_start = start
    if last_offset >= 0:
        base_sequence = (last_sequence - offset_delta) & _SEQUENCE_MASK
        producer.batches.append(ProducedBatch(base_sequence, last_sequence, last_offset, offset_delta, timestamp))
    return producer


class Snapshots:
    """The snapshot files of one partition."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, offset: int, states: ProducerStates) -> Path:
        """Write a snapshot without fsync: both it and the folder must be synced before they are relied on."""
        path = self._folder / file_name(offset, SNAPSHOT)
        replace_file(path, encode_snapshot(states), is_durable=False)
        return path

    def newest(self, until_offset: int) -> tuple[int, ProducerStates]:
        """The newest valid snapshot taken at or before `until_offset`, with its offset; an empty one at 0 if there is
        none.
        """
        for offset in sorted(self.offsets(), reverse=True):
            if offset <= until_offset:
                try:
                    path = self._folder / file_name(offset, SNAPSHOT)
                    return offset, decode_snapshot(path.read_bytes())
                except (BadSnapshot, OSError):
                    continue
        return 0, ProducerStates()

    def offsets(self) -> list[int]:
        found = (offset_in_name(path.name, SNAPSHOT) for path in self._folder.iterdir())
        return [offset for offset in found if offset is not None]

    def keep_only(self, wanted: Collection[int]) -> None:
        for offset in self.offsets():
            if offset not in wanted:
                (self._folder / file_name(offset, SNAPSHOT)).unlink(missing_ok=True)
