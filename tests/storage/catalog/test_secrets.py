from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import DataDirError
from ottla.core.keys import KeyRing
from ottla.core.sealing import Sealer
from ottla.storage.catalog.entries import ScramCredential, ScramMechanism
from ottla.storage.catalog.sqlite import SqliteCatalog

if TYPE_CHECKING:
    from pathlib import Path

ONE_KEY = KeyRing({1: b"1" * 32})
TWO_KEYS = KeyRing({1: b"1" * 32, 2: b"2" * 32})
STORED, SERVER = b"<the stored key of 32 bytes size", b"<the server key of 32 bytes size"
ANN = ScramCredential("ann", ScramMechanism.SCRAM_SHA_256, b"salt", 4096, STORED, SERVER)


def bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def open_catalog(folder: Path, ring: KeyRing | None) -> SqliteCatalog:
    return SqliteCatalog.open(folder, None if ring is None else Sealer(ring))


def credentials(catalog: SqliteCatalog) -> list[ScramCredential]:
    return list(catalog.view.credentials.values())


def test_verifiers_are_sealed_and_come_back(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, ONE_KEY)
    catalog.put_credential(ANN)
    assert STORED not in bytes_in(tmp_path)
    catalog.close()

    catalog = open_catalog(tmp_path, ONE_KEY)

    assert credentials(catalog) == [ANN]
    assert STORED not in bytes_in(tmp_path)
    assert SERVER not in bytes_in(tmp_path)
    catalog.close()


def test_verifiers_from_before_are_sealed_when_encryption_is_turned_on(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, None)
    catalog.put_credential(ANN)
    catalog.close()
    assert STORED in bytes_in(tmp_path)

    catalog = open_catalog(tmp_path, ONE_KEY)

    assert credentials(catalog) == [ANN]
    assert STORED not in bytes_in(tmp_path)
    catalog.close()


def test_a_new_key_re_encrypts_verifiers(tmp_path: Path) -> None:
    sealer = Sealer(ONE_KEY)
    catalog = SqliteCatalog.open(tmp_path, sealer)
    catalog.put_credential(ANN)

    sealer.use(TWO_KEYS)
    catalog.reseal()
    catalog.close()

    catalog = open_catalog(tmp_path, KeyRing({2: b"2" * 32}))
    assert credentials(catalog) == [ANN]
    catalog.close()


@pytest.mark.parametrize("ring", [None, KeyRing({1: b"x" * 32})])
def test_a_catalog_does_not_open_without_its_key(tmp_path: Path, ring: KeyRing | None) -> None:
    catalog = open_catalog(tmp_path, ONE_KEY)
    catalog.put_credential(ANN)
    catalog.close()

    with pytest.raises(DataDirError):
        open_catalog(tmp_path, ring)


def test_a_verifier_that_was_given_to_another_user_is_refused(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, ONE_KEY)
    catalog.put_credential(ANN)
    with catalog._db:
        catalog._db.execute("UPDATE scram_credential SET user = 'bob'")
    catalog.close()

    with pytest.raises(DataDirError, match="modified or moved"):
        open_catalog(tmp_path, ONE_KEY)
