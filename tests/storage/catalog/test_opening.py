"""Opening a catalog: refused files, their errors, and that nothing is modified."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import DataDirError
from ottla.storage.catalog.database import CATALOG_FILE, transaction
from ottla.storage.catalog.schema import MIGRATIONS, format_version, upgrade
from ottla.storage.catalog.sqlite import SqliteCatalog

from .contract import ANN, ANN_READS_ORDERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from ottla.storage.catalog.sqlite import SqliteCatalog
catalog = SqliteCatalog.open(Path(sys.argv[1]))
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A folder with a catalog of several pages."""
    folder = tmp_path / "data"
    folder.mkdir()
    with closing(SqliteCatalog.open(folder)) as catalog:
        for number in range(100):
            catalog.create_topic(f"topic-{number}", 3, {"retention.ms": str(number)})
        catalog.put_credential(ANN)
        catalog.add_acls([ANN_READS_ORDERS])
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refusal(folder: Path) -> str:
    """The sentence it is refused with, after a look whether anything changed."""
    before = contents(folder)
    with pytest.raises(DataDirError) as refused:
        SqliteCatalog.open(folder)
    assert contents(folder) == before
    assert "\n" not in str(refused.value)
    return str(refused.value)


def edit_header(folder: Path, at: int, value: int) -> None:
    with (folder / CATALOG_FILE).open("r+b") as file:
        file.seek(at)
        file.write(value.to_bytes(4))


@pytest.mark.parametrize("garbage", [b"", b"x", b"\0" * 4096, b"not a database " * 1000, b"SQLite format 3\0"])
def test_a_file_that_is_not_a_sqlite_database_is_refused(tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / CATALOG_FILE).write_bytes(garbage)

    assert refusal(tmp_path).startswith(
        f"{tmp_path / CATALOG_FILE} is damaged: it is not a SQLite database. Restore it"
    )


def test_the_sqlite_database_of_something_else_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / CATALOG_FILE)) as other:
        other.execute("CREATE TABLE topic (id)")

    assert refusal(tmp_path).endswith("is a SQLite database, but not created by Ottla")


def test_a_catalog_of_a_newer_format_is_refused(filled: Path) -> None:
    edit_header(filled, 60, len(MIGRATIONS) + 1)

    newest = len(MIGRATIONS)
    assert f"has format {newest + 1} of a newer Ottla; this version supports up to {newest}" in refusal(filled)


def test_a_newer_format_is_noticed_while_it_is_only_in_the_write_ahead_log(filled: Path) -> None:
    killed_after(filled, "db.execute('PRAGMA user_version = 99')")
    assert int.from_bytes((filled / CATALOG_FILE).read_bytes()[60:64]) == len(MIGRATIONS)

    with pytest.raises(DataDirError, match="has format 99 of a newer Ottla"):
        SqliteCatalog.open(filled)


def killed_after(folder: Path, statement: str) -> None:
    """Run one statement as a process that dies before SQLite can merge its write-ahead log."""
    code = (
        "import os, sys; from pathlib import Path\n"
        "from ottla.storage.catalog.database import open_database\n"
        "db = open_database(Path(sys.argv[1]))\n"
        f"{statement}\nos.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=False)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 cannot close without merging the log")
def test_refusing_leaves_the_write_ahead_log_of_a_newer_format_alone(filled: Path) -> None:
    killed_after(filled, "db.execute('PRAGMA user_version = 99')")

    assert "has format 99" in refusal(filled)


def test_a_file_cut_short_anywhere_is_refused_unless_it_lost_only_padding(filled: Path) -> None:
    whole = (filled / CATALOG_FILE).read_bytes()
    content = len(whole.rstrip(b"\0"))
    with closing(SqliteCatalog.open(filled)) as catalog:
        view = catalog.view
    for length in [*range(1, 200, 13), *range(200, content, 509), content - 1]:
        (filled / CATALOG_FILE).write_bytes(whole[:length])
        assert refusal(filled)

    (filled / CATALOG_FILE).write_bytes(whole[:content])
    with closing(SqliteCatalog.open(filled)) as catalog:
        assert catalog.view == view


def test_a_flipped_bit_is_refused_or_harmless_to_the_process(filled: Path) -> None:
    whole = (filled / CATALOG_FILE).read_bytes()
    refused = 0
    for at in range(0, len(whole), 97):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        (filled / CATALOG_FILE).write_bytes(damaged)
        try:
            SqliteCatalog.open(filled).close()
        except DataDirError:
            refused += 1
    assert refused > 50


def test_a_read_only_folder_is_refused(filled: Path, small_disk: Path) -> None:
    for name, data in contents(filled).items():
        (small_disk / name).write_bytes(data)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    assert refusal(small_disk) == f"the data folder {small_disk} is not writable"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where file modes forbid it")
def test_a_folder_without_write_permission_is_refused(filled: Path) -> None:
    filled.chmod(0o555)
    try:
        assert refusal(filled) == f"the data folder {filled} is not writable"
    finally:
        filled.chmod(0o755)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataDirError, match="nowhere does not exist"):
        SqliteCatalog.open(tmp_path / "nowhere")


def test_a_folder_in_the_catalogs_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / CATALOG_FILE).mkdir()

    assert "cannot be used: Is a directory" in refusal(tmp_path)


def test_a_catalog_whose_file_was_lost_but_not_its_last_changes_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"{CATALOG_FILE}-wal").write_bytes(b"frames")

    assert "with its last changes exists" in refusal(tmp_path)


@pytest.fixture
def holder(filled: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the catalog open."""
    command = [sys.executable, "-c", HOLD, str(filled)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_catalog_in_use_is_refused_until_its_holder_is_gone(filled: Path, holder: subprocess.Popen[str]) -> None:
    assert refusal(filled) == f"{filled / CATALOG_FILE} is in use by another process"

    holder.kill()
    holder.wait()
    with closing(SqliteCatalog.open(filled)) as catalog:
        assert len(catalog.view.topics) == 100


@pytest.mark.usefixtures("holder")
def test_other_processes_cannot_change_or_lock_a_catalog_in_use(filled: Path) -> None:
    with closing(sqlite3.connect(filled / CATALOG_FILE, timeout=0)) as intruder:
        for statement in ("SELECT * FROM topic", "BEGIN EXCLUSIVE", "DELETE FROM topic"):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                intruder.execute(statement)


def test_a_draft_left_by_a_crash_is_replaced(tmp_path: Path) -> None:
    for suffix in ("", "-wal", "-journal"):
        (tmp_path / f"{CATALOG_FILE}.new{suffix}").write_bytes(b"half a catalog")

    SqliteCatalog.open(tmp_path).close()

    assert [path.name for path in tmp_path.iterdir()] == [CATALOG_FILE]


def test_an_upgrade_keeps_what_is_there_and_a_failed_one_changes_nothing(filled: Path) -> None:
    add_column = ("ALTER TABLE topic ADD COLUMN note TEXT NOT NULL DEFAULT 'none'",)
    broken = ("DROP TABLE acl", "CREATE nonsense")
    with closing(sqlite3.connect(filled / CATALOG_FILE, isolation_level=None)) as db:
        with transaction(db):
            upgrade(db, [*MIGRATIONS, add_column])
        assert format_version(db) == len(MIGRATIONS) + 1

        with pytest.raises(Exception, match="nonsense"), transaction(db):
            upgrade(db, [*MIGRATIONS, add_column, broken])

        assert format_version(db) == len(MIGRATIONS) + 1
        assert db.execute("SELECT count(*) FROM acl").fetchone() == (1,)
        assert db.execute("SELECT DISTINCT note, count(*) FROM topic").fetchone() == ("none", 100)
