from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.records.batch import read_header
from ottla.records.control import EndMarker, build_end_marker
from ottla.storage.producers.snapshot import BadSnapshot, Snapshots, decode_snapshot, encode_snapshot
from ottla.storage.producers.state import ProducerStates

from .making import NOW, Producing, batch

if TYPE_CHECKING:
    from pathlib import Path

EMPTY = bytes.fromhex("0001 48674bc7 00000000")
LAST = (1 << 31) - 1


def states_after(*batches: bytearray) -> ProducerStates:
    states = ProducerStates()
    offset = 0
    for one in batches:
        header = read_header(one)
        states.appended(header, offset)
        offset = offset + header.last_offset_delta + 1
    return states


def test_a_log_without_producers_has_a_snapshot_of_ten_bytes() -> None:
    assert encode_snapshot(ProducerStates()) == EMPTY
    assert decode_snapshot(EMPTY).producers == {}


def test_an_entry_is_what_kafka_writes() -> None:
    states = ProducerStates()
    one = read_header(batch(at=1_700_000_005_000, by=Producing(3, 0, 0, is_transactional=True)))
    states.appended(one, 132)

    assert encode_snapshot(states)[6:] == bytes.fromhex(
        "000000010000000000000003 0000 00000000 0000000000000084 00000000 0000018bcfe57b88 ffffffff 0000000000000084"
    )


def test_a_producer_of_which_only_a_marker_is_left_has_no_sequence() -> None:
    states = ProducerStates()
    marker = EndMarker(is_commit=True, coordinator_epoch=5)
    states.ended(read_header(build_end_marker(marker, 3, 2, NOW)), 17, marker)

    data = encode_snapshot(states)

    assert data[10:] == bytes.fromhex(
        "0000000000000003 0002 ffffffff ffffffffffffffff 00000000 0000018bcfe56800 00000005 ffffffffffffffff"
    )
    assert decode_snapshot(data).producers == states.producers


@pytest.mark.parametrize("sequence", [0, 5, LAST, LAST - 1])
def test_what_is_known_of_the_last_batch_survives(sequence: int) -> None:
    last = batch(b"a", b"b", b"c", at=[NOW, NOW + 9, NOW + 3], by=Producing(1, 4, sequence))
    before = states_after(batch(by=Producing(2, 0, 9, is_transactional=True)), last)

    after = decode_snapshot(encode_snapshot(before))

    assert after.producers == before.producers
    known = after.check(read_header(last))
    assert known is not None
    assert (known.base_offset, known.last_offset, known.timestamp) == (1, 3, NOW + 9)
    assert after.first_unstable_offset == 0


def test_of_several_batches_only_the_last_is_kept() -> None:
    states = states_after(batch(by=Producing(1, 0, 0)), batch(by=Producing(1, 0, 1)))

    kept = decode_snapshot(encode_snapshot(states)).producers[1]

    assert [one.base_sequence for one in kept.batches] == [1]


def test_every_damaged_byte_and_truncation_is_detected() -> None:
    data = encode_snapshot(states_after(batch(by=Producing(1, 0, 0))))

    for at in range(len(data)):
        with pytest.raises(BadSnapshot):
            decode_snapshot(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with pytest.raises(BadSnapshot):
            decode_snapshot(data[:at])
    with pytest.raises(BadSnapshot):
        decode_snapshot(data + b"\0")


def test_the_newest_usable_snapshot_is_loaded_and_damaged_ones_are_skipped(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    for offset in (10, 20, 30, 40):
        states = states_after(batch(by=Producing(offset, 0, 0)))
        snapshots.write(offset, states)
    (tmp_path / f"{30:020d}.snapshot").write_bytes(b"garbage")
    (tmp_path / f"{20:020d}.snapshot").write_bytes(b"")

    assert list(snapshots.newest(100)[1].producers) == [40]
    assert snapshots.newest(40)[0] == 40
    assert snapshots.newest(39)[0] == 10
    assert snapshots.newest(10)[0] == 10
    taken_at, nothing = snapshots.newest(9)
    assert taken_at == 0
    assert nothing.producers == {}


def test_only_wanted_snapshots_are_kept_and_other_files_are_left_alone(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    for offset in (10, 20, 30):
        snapshots.write(offset, ProducerStates())
    for name in ("20.snapshot", f"{20:020d}.log", f"{40:020d}.snapshot.deleted"):
        (tmp_path / name).touch()

    assert sorted(snapshots.offsets()) == [10, 20, 30]
    snapshots.keep_only({20, 50})

    assert snapshots.offsets() == [20]
    assert len(list(tmp_path.iterdir())) == 4
