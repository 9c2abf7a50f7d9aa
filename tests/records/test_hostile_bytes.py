"""Batches damaged at every position: both forms and both decoders report the same error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fuzz.forms import load_forms
from fuzz.targets import Targets

from .making import NONE, built, sealed

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGETS = Targets(load_forms())
ROWS = [
    (1000, b"key", b"value", [("name", b"1"), ("näme", None)]),
    (998, None, b"v" * 70, []),
    (1 << 33, b"", None, [("", b"")]),
]
WHOLE = {codec: bytes(built(TARGETS.forms[0], ROWS, codec)) for codec in range(5)}
RAW = b"\x01"


def flips(whole: bytes) -> Iterator[bytearray]:
    for position in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            yield damaged


@pytest.mark.parametrize("codec", range(5))
def test_every_truncation_is_refused(codec: int) -> None:
    for size in range(1, len(WHOLE[codec])):
        for decode in (TARGETS.reader, TARGETS.columns):
            assert decode(RAW + WHOLE[codec][:size])[0] == "CorruptMessage"


def test_every_flipped_bit_that_the_checksum_covers_is_refused() -> None:
    for position, damaged in enumerate(flips(WHOLE[NONE])):
        is_covered = position // 8 not in (*range(8), *range(12, 16))
        for decode in (TARGETS.reader, TARGETS.columns):
            kind, _ = decode(RAW + damaged)
            if is_covered:
                assert kind in ("CorruptMessage", "UnsupportedForMessageFormat")


@pytest.mark.parametrize("codec", range(5))
def test_every_flipped_bit_with_a_valid_checksum_gives_the_same_result(codec: int) -> None:
    for damaged in flips(WHOLE[codec]):
        TARGETS.reader(RAW + sealed(damaged))
        TARGETS.columns(RAW + sealed(damaged))


def test_every_flipped_header_bit_gives_the_same_result() -> None:
    for damaged in flips(WHOLE[NONE][:61]):
        TARGETS.batch(RAW + damaged + WHOLE[NONE][61:])


def test_every_byte_of_the_records_may_be_anything() -> None:
    whole = WHOLE[NONE]
    for position in range(61, len(whole)):
        for value in (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF):
            damaged = bytearray(whole)
            damaged[position] = value
            TARGETS.columns(RAW + sealed(damaged))


def test_consecutive_batches_are_refused_at_the_damaged_one() -> None:
    forms = TARGETS.forms
    for damaged in flips(WHOLE[NONE][16:70]):
        data = WHOLE[NONE] + WHOLE[NONE][:16] + damaged + WHOLE[NONE][70:] + WHOLE[NONE]
        for form in forms:
            reader = form.reader.RecordReader(data)
            assert [next(reader).offset for _ in ROWS] == [0, 1, 2]
        assert TARGETS.reader(RAW + data)[0] != "came out"
