from __future__ import annotations

import itertools

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ottla.core import sealing
from ottla.core.keys import KeyRing, first_ring
from ottla.core.sealing import SEAL_BYTES, BrokenSeal, Sealer, UnknownKey, check_value, key_id_of


def test_sealed_data_opens_only_in_its_context() -> None:
    sealer = Sealer(first_ring())
    sealed = sealer.seal(b"attack at dawn", b"here")

    assert sealer.open(sealed, b"here") == b"attack at dawn"
    assert b"dawn" not in sealed
    assert len(sealed) == len(b"attack at dawn") + SEAL_BYTES
    with pytest.raises(BrokenSeal):
        sealer.open(sealed, b"there")


def test_every_flipped_bit_is_detected() -> None:
    sealer = Sealer(first_ring())
    sealed = sealer.seal(b"dawn", b"here")

    for at, bit in itertools.product(range(len(sealed)), range(8)):
        changed = bytearray(sealed)
        changed[at] ^= 1 << bit
        with pytest.raises(BrokenSeal):
            sealer.open(bytes(changed), b"here")
    for size in range(len(sealed)):
        with pytest.raises(BrokenSeal):
            sealer.open(sealed[:size], b"here")


def test_no_nonce_is_used_twice_with_one_key() -> None:
    ring = first_ring()
    sealed = [sealer.seal(b"same", b"") for sealer in (Sealer(ring), Sealer(ring)) for _ in range(100)]

    assert len({one[:28] for one in sealed}) == 200
    assert len({one[28:] for one in sealed}) == 200


def test_a_session_ends_before_its_nonces_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "_SEALED_PER_SESSION", 3)
    sealer = Sealer(first_ring())

    sealed = [sealer.seal(b"same", b"") for _ in range(7)]

    assert [int.from_bytes(one[20:28], "big") for one in sealed] == [0, 1, 2, 0, 1, 2, 0]
    assert len({one[4:20] for one in sealed}) == 3
    assert {sealer.open(one, b"") for one in sealed} == {b"same"}


def test_a_new_key_seals_and_the_old_one_still_opens() -> None:
    ring = first_ring()
    sealer = Sealer(ring)
    old = sealer.seal(b"old", b"")

    sealer.use(ring.with_new_key())
    new = sealer.seal(b"new", b"")

    assert (key_id_of(old), key_id_of(new)) == (1, 2)
    assert (sealer.open(old, b""), sealer.open(new, b"")) == (b"old", b"new")
    with pytest.raises(UnknownKey, match="key 2"):
        Sealer(ring).open(new, b"")


def test_the_format_matches_its_documentation() -> None:
    """With the library only: the key is sufficient to read the data without Ottla."""
    key = bytes(range(32))
    sealed = Sealer(KeyRing({7: key})).seal(b"dawn", b"here")
    session, number = sealed[4:20], sealed[20:28]

    derived = HKDF(SHA256(), 32, session, b"ottla seal").derive(key)

    assert sealed[:4] == b"\0\0\0\x07"
    assert AESGCM(derived).decrypt(bytes(4) + number, sealed[28:], b"here") == b"dawn"


def test_the_session_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "_KNOWN_SESSIONS", 2)
    ring = first_ring()
    sealed = [Sealer(ring).seal(b"%d" % number, b"") for number in range(5)]

    sealer = Sealer(ring)

    assert [sealer.open(one, b"") for one in sealed] == [b"0", b"1", b"2", b"3", b"4"]
    assert len(sealer._opening) <= 2


def test_a_check_value_tells_keys_apart() -> None:
    assert check_value(bytes(32)) == check_value(bytes(32))
    assert check_value(bytes(32)) != check_value(bytes(31) + b"\1")
