from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import CorruptMessage, StorageError
from ottla.records.checksum import crc32c
from ottla.records.control import EndMarker
from ottla.storage.retention import delete_expired
from ottla.storage.truncation import truncate_to

from .encrypting import ONE_KEY, TWO_KEYS, cipher, files_with
from .making import (
    EVERY_BATCH,
    NOW,
    Producing,
    batch,
    headers,
    offset_for_timestamp,
    offsets,
    read_all,
    read_steps,
    values,
)

if TYPE_CHECKING:
    from .conftest import OpenPartition
    from .making import Partition

MARKER = b"the-marker-that-nobody-may-find"


def fill(partition: Partition, first: int = 0, count: int = 12) -> list[bytes]:
    """Append batches of an idempotent producer, each with the marker text; returns the batches."""
    made = []
    for number in range(first, first + count):
        made.append(batch(MARKER * 8 + b"%d" % number, at=NOW + number, by=Producing(5, 0, number)))
        partition.log.append(made[-1])
    return [bytes(one) for one in made]


def test_appended_batches_are_read_byte_for_byte(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher(), segment_bytes=1024)

    made = fill(encrypted)

    assert encrypted.names("log") == [name.replace(".index", ".elog") for name in encrypted.names(".index")]
    assert len(encrypted.names(".elog")) > 2
    assert read_all(encrypted.log) == b"".join(made)
    assert [bytes(one) for one in read_steps(encrypted.log, 0, 1)] == made


def test_segments_do_not_exceed_their_limit(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher(), segment_bytes=1024)

    fill(encrypted, count=40)

    assert max(path.stat().st_size for path in encrypted.folder.glob("*.elog")) <= 1024


@pytest.mark.parametrize("is_clean", [True, False])
def test_no_file_has_plaintext(partition: OpenPartition, *, is_clean: bool) -> None:
    encrypted = partition(cipher=cipher(), segment_bytes=1024, retention_bytes=2048)
    made = fill(encrypted)
    assert files_with(MARKER, encrypted.folder) == []

    removed = delete_expired(encrypted.log, NOW)
    assert removed
    assert files_with(MARKER, encrypted.folder) == []

    log = encrypted.reopen_clean() if is_clean else encrypted.reopen_unclean(0)
    assert files_with(MARKER, encrypted.folder) == []
    assert b"".join(made).endswith(read_all(log))
    assert log.next_offset == 12


def test_the_truncated_part_of_a_torn_write_is_kept_encrypted(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher())
    made = fill(encrypted, count=3)
    [segment] = encrypted.folder.glob("*.elog")
    encrypted.kill()
    os.truncate(segment, segment.stat().st_size - 5)

    log = encrypted.reopen_unclean(0)

    assert read_all(log) == b"".join(made[:2])
    assert [name for name in encrypted.names(".corrupt") if ".elog." in name]
    assert files_with(MARKER, encrypted.folder) == []


def test_indexes_are_rebuilt_from_encrypted_batches(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher(), segment_bytes=2048, index_interval_bytes=EVERY_BATCH)
    made = fill(encrypted)
    encrypted.stop()
    before = {path.name: path.read_bytes() for path in encrypted.folder.glob("*index")}
    for path in encrypted.folder.glob("*index"):
        path.unlink()

    log = encrypted.reopen_clean()

    assert read_all(log) == b"".join(made)
    found = offset_for_timestamp(log, NOW + 7)
    assert found is not None
    assert found.offset == 7
    encrypted.stop()
    assert {path.name: path.read_bytes() for path in encrypted.folder.glob("*index")} == before


def test_producers_and_aborted_transactions_are_replayed(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher(), segment_bytes=1024)
    made = fill(encrypted)
    for number in range(3):
        encrypted.log.append(batch(MARKER, by=Producing(6, 0, number, is_transactional=True)))
        encrypted.log.append_end_marker(6, 0, EndMarker(is_commit=number == 1, coordinator_epoch=1))
    aborted = encrypted.log.aborted_transactions(0, 100)
    encrypted.kill()
    for path in [*encrypted.folder.glob("*.snapshot"), *encrypted.folder.glob("*.txnindex")]:
        path.unlink()

    log = encrypted.reopen_unclean(0)

    assert len(aborted) == 2
    assert log.aborted_transactions(0, 100) == aborted
    again = log.append(bytearray(made[-1]))
    assert (again.is_duplicate, again.base_offset) == (True, 11)
    assert offsets(read_all(log)) == list(range(18))


def test_every_changed_byte_of_a_small_log_is_an_error_for_the_batch_it_is_in(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher())
    made = [bytes(batch(MARKER, at=NOW + number)) for number in range(3)]
    for one in made:
        encrypted.log.append(bytearray(one))
    expected = list(read_steps(encrypted.log, 0, 1))
    encrypted.stop()
    [segment] = encrypted.folder.glob("*.elog")
    stored = segment.read_bytes()
    size = len(stored) // 3
    for at in range(size, 2 * size):
        changed = bytearray(stored)
        changed[at] ^= 0x40
        # As an attacker who knows the format would.
        struct.pack_into(">I", changed, size + 17, crc32c(changed[size + 21 : 2 * size]))
        is_changed = changed != stored
        segment.write_bytes(changed)
        log = encrypted.reopen_clean()
        assert bytes(log.read(0, 1)) == expected[0]
        if is_changed:
            with pytest.raises(CorruptMessage):
                log.read(1, 1)
        # By its own offset, what lies behind is there.
        assert bytes(log.read(2, 1)) == expected[2]
        encrypted.kill()


def test_swapped_batches_are_not_served(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher())
    for value in (b"yes", b"no!"):
        encrypted.log.append(batch(value))
    encrypted.stop()
    [segment] = encrypted.folder.glob("*.elog")
    stored = segment.read_bytes()
    first, second = stored[: len(stored) // 2], stored[len(stored) // 2 :]
    # Each at the other's place, and with the other's offset.
    segment.write_bytes(first[:8] + second[8:] + second[:8] + first[8:])

    log = encrypted.reopen_clean()

    for offset in (0, 1):
        with pytest.raises(CorruptMessage):
            log.read(offset, 1)


def test_a_tampered_end_is_cut_off_after_a_crash_like_a_torn_one(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher())
    made = fill(encrypted, count=3)
    encrypted.kill()
    [segment] = encrypted.folder.glob("*.elog")
    changed = bytearray(segment.read_bytes())
    start = len(changed) // 3 * 2
    changed[-1] ^= 1
    struct.pack_into(">I", changed, start + 17, crc32c(changed[start + 21 :]))
    segment.write_bytes(changed)

    log = encrypted.reopen_unclean(0)

    assert read_all(log) == b"".join(made[:2])
    assert log.next_offset == 2


# Turning it on


def test_after_enabling_encryption_new_data_is_encrypted_and_all_is_readable(partition: OpenPartition) -> None:
    changing = partition(segment_bytes=1024)
    made = fill(changing)
    changing.stop()
    changing.cipher = cipher()
    log = changing.reopen_clean()

    made += fill(changing, first=12)

    assert read_all(log) == b"".join(made)
    assert len(changing.names(".log")) > 2
    assert changing.names(".elog")[0] == "00000000000000000012.elog"
    assert read_all(changing.reopen_unclean(0)) == b"".join(made)
    assert read_all(changing.reopen_clean()) == b"".join(made)


def test_after_enabling_encryption_an_empty_log_has_no_plain_segment(partition: OpenPartition) -> None:
    changing = partition()
    changing.stop()
    changing.cipher = cipher()

    changing.reopen_clean()

    assert changing.names("log") == ["00000000000000000000.elog"]


def test_a_kill_right_after_enabling_encryption_is_recovered(partition: OpenPartition) -> None:
    changing = partition()
    changing.stop()
    (changing.folder / "00000000000000000000.elog").touch()
    changing.cipher = cipher()

    log = changing.reopen_unclean(0)
    made = fill(changing)

    assert changing.names("log") == ["00000000000000000000.elog"]
    assert read_all(log) == b"".join(made)


def test_an_encrypted_log_does_not_open_without_its_key(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher())
    fill(encrypted)
    encrypted.stop()
    before = {path.name: path.read_bytes() for path in encrypted.folder.iterdir()}
    encrypted.cipher = None

    with pytest.raises(StorageError, match="no keys are configured"):
        encrypted.reopen_unclean()

    assert {path.name: path.read_bytes() for path in encrypted.folder.iterdir()} == before


def test_a_plain_segment_is_refused_where_everything_is_encrypted(partition: OpenPartition) -> None:
    forged = partition("forged-0")
    fill(forged)
    forged.stop()
    forged.cipher = cipher(allows_plain=False)

    with pytest.raises(StorageError, match="not encrypted"):
        forged.reopen_clean()


def test_two_segments_of_the_same_offset_are_not_guessed_between(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher())
    fill(encrypted)
    encrypted.stop()
    (encrypted.folder / "00000000000000000000.log").write_bytes(bytes(batch(b"forged")))

    with pytest.raises(StorageError, match="offset 0"):
        encrypted.reopen_clean()


def test_a_log_that_is_truncated_goes_on_encrypted(partition: OpenPartition) -> None:
    encrypted = partition(cipher=cipher(), segment_bytes=1024)
    made = fill(encrypted)

    truncate_to(encrypted.log, 5)
    encrypted.log.append(batch(b"instead"))

    assert read_all(encrypted.log).startswith(b"".join(made[:5]))
    assert values(read_all(encrypted.log))[5:] == [b"instead"]
    assert headers(read_all(encrypted.reopen_unclean(0)))[-1].base_offset == 5


def test_a_new_key_is_used_within_a_segment(partition: OpenPartition) -> None:
    sealing = cipher(ONE_KEY)
    encrypted = partition(cipher=sealing)
    made = fill(encrypted)
    sealing._sealer.use(TWO_KEYS)

    made += fill(encrypted, first=12)

    assert read_all(encrypted.log) == b"".join(made)
    encrypted.cipher = cipher(TWO_KEYS)
    assert read_all(encrypted.reopen_unclean(0)) == b"".join(made)
