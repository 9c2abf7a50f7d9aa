from __future__ import annotations

import struct
from uuid import UUID

import pytest

from ottla.core.errors import CorruptMessage
from ottla.core.ids import TopicId
from ottla.core.sealing import SEAL_BYTES
from ottla.records.batch import check_batch
from ottla.records.checksum import crc32c
from ottla.storage.cipher import KEY_ID_END, key_id_of_batch

from .encrypting import ONE_KEY, OTHER_KEY, TOPIC, TWO_KEYS, cipher
from .making import Producing, batch, placed

SMALL = placed(batch(b"attack", b"at dawn", by=Producing(5, 0, 3, is_transactional=True)), 40, leader_epoch=2)


def test_a_batch_round_trips() -> None:
    sealing = cipher()

    for codec in range(5):
        made = placed(batch(b"attack" * 20, compression=codec), 40, leader_epoch=2)
        assert sealing.open(sealing.seal(made)) == made


def test_many_batches_are_decrypted_together() -> None:
    sealing = cipher()
    made = [placed(batch(b"%d" % number, size=100_000), number) for number in range(5)]

    stored = b"".join(bytes(sealing.seal(one)) for one in made)

    assert sealing.open(stored) == b"".join(made)


def test_what_is_stored_has_the_form_of_a_batch_and_a_readable_header() -> None:
    header = check_batch(cipher().seal(SMALL))

    assert header.size == len(SMALL) + SEAL_BYTES
    assert (header.base_offset, header.leader_epoch, header.last_offset) == (40, 2, 41)
    assert (header.producer_id, header.base_sequence, header.record_count) == (5, 3, 2)


def test_stored_bytes_reveal_nothing_of_the_records() -> None:
    stored = bytes(cipher().seal(SMALL))

    assert b"dawn" not in stored
    assert b"attack" not in stored
    assert SMALL[17:21] not in stored, "the checksum of the records is there"


def test_the_key_is_known_by_its_number() -> None:
    assert key_id_of_batch(bytes(cipher(TWO_KEYS).seal(SMALL))[:KEY_ID_END]) == 2


@pytest.mark.parametrize("with_right_checksum", [False, True])
def test_every_changed_byte_is_noticed(*, with_right_checksum: bool) -> None:
    sealing = cipher()
    stored = bytes(sealing.seal(SMALL))
    unnoticed = []
    for at in range(len(stored)):
        changed = bytearray(stored)
        changed[at] ^= 0x01
        if with_right_checksum:
            struct.pack_into(">I", changed, 17, crc32c(changed[21:]))
        try:
            check_batch(changed)
            assert sealing.open(bytes(changed)) == SMALL
        except CorruptMessage:
            continue
        unnoticed.append(at)

    # Only a recomputed checksum does not count as a change.
    assert unnoticed == ([17, 18, 19, 20] if with_right_checksum else [])


def test_a_batch_opens_only_where_it_was_written() -> None:
    stored = bytes(cipher().seal(SMALL))
    moved = bytearray(stored)
    struct.pack_into(">q", moved, 0, 41)

    for opening, data in (
        (cipher(partition=1), stored),
        (cipher(topic_id=TopicId(UUID(int=8))), stored),
        (cipher(OTHER_KEY), stored),
        (cipher(), bytes(moved)),
    ):
        with pytest.raises(CorruptMessage):
            opening.open(data)
    assert cipher(ONE_KEY, TOPIC).open(stored) == SMALL


def test_a_plain_batch_is_not_accepted_as_encrypted() -> None:
    for plain in (SMALL, placed(batch(b""), 3)):
        with pytest.raises(CorruptMessage):
            cipher().open(bytes(plain))
