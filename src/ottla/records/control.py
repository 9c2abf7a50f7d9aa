"""Control batches: the markers that end a transaction."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from ottla.core.errors import CorruptMessage
from ottla.records.batch import read_header
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_ABORT: Final = 0
_COMMIT: Final = 1


@dataclass(frozen=True, slots=True)
class EndMarker:
    """An end transaction marker, from its control record."""

    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = field(default=0, compare=False)
    """The transaction version of the request (KIP-1228); not in the control record."""


def read_end_marker(batch: bytes | bytearray | memoryview) -> EndMarker | None:
    """The marker in this control batch; None for other control records."""
    if not read_header(batch).is_control:
        raise ValueError("only a control batch has a marker")
    record = next(iter(RecordReader(batch, with_control=True)), None)
    if record is None or record.key is None or len(record.key) < _KEY.size:
        raise CorruptMessage("a control batch has no control record")
    kind = _KEY.unpack_from(record.key)[1]
    if kind not in (_ABORT, _COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise CorruptMessage("an end transaction marker has no value")
    return EndMarker(kind == _COMMIT, _VALUE.unpack_from(record.value)[1])


def build_end_marker(marker: EndMarker, producer_id: int, producer_epoch: int, timestamp: int) -> bytearray:
    builder = BatchBuilder()
    key = _KEY.pack(0, _COMMIT if marker.is_commit else _ABORT)
    builder.append(timestamp, key, _VALUE.pack(0, marker.coordinator_epoch))
    return builder.build(producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True)
