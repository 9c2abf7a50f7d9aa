"""End markers of transactions."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from aiokafka.record.control_record import ABORT_MARKER, COMMIT_MARKER, ControlRecord

from ottla.core.errors import CorruptMessage

from .making import CONTROL, MAX_INT32, batch, record

if TYPE_CHECKING:
    from fuzz.forms import Form


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("epoch", [0, 5, MAX_INT32, -1])
def test_a_marker_that_is_written_is_read(form: Form, is_commit: bool, epoch: int) -> None:
    marker = form.control.EndMarker(is_commit, epoch)

    data = form.control.build_end_marker(marker, 1 << 40, 3, 77)

    assert form.control.read_end_marker(data) == marker
    header = form.batch.check_batch(data)
    assert (header.is_control, header.is_transactional, header.record_count) == (True, True, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1 << 40, 3, -1)
    assert header.max_timestamp == 77


@pytest.mark.parametrize("is_commit", [True, False])
def test_another_library_reads_the_same(form: Form, is_commit: bool) -> None:
    data = form.control.build_end_marker(form.control.EndMarker(is_commit, 9), 1, 0, 77)

    [marker] = form.reader.RecordReader(data, with_control=True)

    assert ControlRecord.parse(marker.key) == (COMMIT_MARKER if is_commit else ABORT_MARKER)
    assert struct.unpack(">hi", marker.value) == (0, 9)


def test_fields_of_a_newer_version_are_ignored(form: Form) -> None:
    key, value = struct.pack(">hh", 3, 1) + b"more", struct.pack(">hi", 3, 8) + b"more"

    assert form.control.read_end_marker(batch(record(key=key, value=value), attributes=CONTROL)) == (
        form.control.EndMarker(True, 8)  # noqa: FBT003
    )


@pytest.mark.parametrize("kind", [2, 3, 4, 100, -1])
def test_a_control_record_of_another_type_is_not_a_marker(form: Form, kind: int) -> None:
    data = batch(record(key=struct.pack(">hh", 0, kind), value=None), attributes=CONTROL)

    assert form.control.read_end_marker(data) is None


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00"])
def test_a_control_record_without_its_key_is_corrupt(form: Form, key: bytes | None) -> None:
    with pytest.raises(CorruptMessage, match="has no control record"):
        form.control.read_end_marker(batch(record(key=key), attributes=CONTROL))


@pytest.mark.parametrize("value", [None, b"", b"\x00\x00\x00\x00\x00"])
def test_a_marker_without_its_value_is_corrupt(form: Form, value: bytes | None) -> None:
    with pytest.raises(CorruptMessage, match="has no value"):
        form.control.read_end_marker(batch(record(key=bytes(4), value=value), attributes=CONTROL))


def test_a_control_batch_without_records_is_corrupt(form: Form) -> None:
    with pytest.raises(CorruptMessage, match="has no control record"):
        form.control.read_end_marker(batch(b"", 0, attributes=CONTROL))


def test_a_batch_of_data_has_no_marker_whatever_its_key(form: Form) -> None:
    with pytest.raises(ValueError, match="only a control batch"):
        form.control.read_end_marker(batch(record(key=bytes(4), value=bytes(6))))
