from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ApiError, StorageError
from ottla.storage.catalog.database import CATALOG_FILE, transaction
from ottla.storage.catalog.sqlite import MAX_PRODUCER_ID, SqliteCatalog

from .contract import ANN, ANN_512, CatalogContract, Reopen

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.catalog.catalog import Catalog


class TestSqliteCatalog(CatalogContract):
    pass


def typed_as_a_catalog(catalog: SqliteCatalog) -> Catalog:
    """Never called: mypy checks the class against the interface here."""
    return catalog


def test_after_a_clean_close_the_catalog_is_one_file_that_others_may_not_read(tmp_path: Path) -> None:
    catalog = SqliteCatalog.open(tmp_path)
    catalog.put_credential(ANN)
    modes_while_open = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    catalog.close()

    assert modes_while_open == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == [CATALOG_FILE]
    assert (tmp_path / CATALOG_FILE).stat().st_mode & 0o777 == 0o600


def test_a_commit_is_synced_before_it_returns(reopen: Reopen) -> None:
    reopen()
    catalog = reopen()
    assert isinstance(catalog, SqliteCatalog)

    settings = [
        catalog._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "locking_mode")
    ]
    assert settings == ["wal", 2, "exclusive"]


def test_a_listener_must_not_change_the_catalog(catalog: Catalog) -> None:
    catalog.listen(lambda _: catalog.put_credential(ANN_512))

    with pytest.raises(RuntimeError, match="listener"):
        catalog.put_credential(ANN)

    assert list(catalog.view.credentials.values()) == [ANN]


def test_exhausted_producer_ids_are_an_error(reopen: Reopen) -> None:
    catalog = reopen()
    assert catalog.next_producer_ids(MAX_PRODUCER_ID - 1).first == 0

    with pytest.raises(ApiError, match="producer ids are exhausted"):
        catalog.next_producer_ids(2)
    assert reopen().next_producer_ids(1).first == MAX_PRODUCER_ID - 1


def test_nothing_of_a_deleted_credential_stays_in_the_file(tmp_path: Path) -> None:
    catalog = SqliteCatalog.open(tmp_path)
    catalog.put_credential(ANN_512)
    catalog.delete_credential(ANN_512.user, ANN_512.mechanism)
    catalog.close()

    assert ANN_512.stored_key not in (tmp_path / CATALOG_FILE).read_bytes()


def test_a_locked_database_refuses_a_transaction_and_takes_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "any.sqlite"
    with (
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db,
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other,
    ):
        db.execute("CREATE TABLE numbers (n)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="locked"), transaction(db):
            db.execute("INSERT INTO numbers VALUES (1)")
        other.execute("ROLLBACK")
        with transaction(db):
            db.execute("INSERT INTO numbers VALUES (2)")

        assert db.execute("SELECT n FROM numbers").fetchall() == [(2,)]
