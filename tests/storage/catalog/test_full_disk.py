from __future__ import annotations

import errno
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import DataDirError, StorageError
from ottla.storage.catalog.sqlite import SqliteCatalog

from .contract import ANN

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator
    from pathlib import Path

CONFIGS = {f"key-{number}": "value" * 50 for number in range(10)}


@contextmanager
def filled_up(disk: Path) -> Iterator[None]:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        while has_room(file):
            pass
    try:
        yield
    finally:
        filler.unlink()


def has_room(file: io.RawIOBase) -> bool:
    try:
        return file.write(b"x" * 1024) == 1024
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


def create_until_refused(catalog: SqliteCatalog, prefix: str) -> set[str]:
    created: set[str] = set()
    for number in range(1000):
        try:
            created.add(catalog.create_topic(f"{prefix}-{number}", 1, CONFIGS).name)
        except StorageError:
            return created
    pytest.fail("the disk was never full")


def test_a_full_disk_refuses_changes_and_works_again_once_there_is_room(small_disk: Path) -> None:
    with closing(SqliteCatalog.open(small_disk)) as catalog:
        acknowledged = {catalog.create_topic("before", 1).name}
        first_ids = catalog.next_producer_ids()
        with filled_up(small_disk):
            acknowledged |= create_until_refused(catalog, "during")
            with pytest.raises(StorageError, match="full"):
                catalog.next_producer_ids()
            with pytest.raises(StorageError, match="full"):
                catalog.put_credential(ANN)
            assert set(catalog.view.topics) == acknowledged
            assert not catalog.view.credentials

        acknowledged.add(catalog.create_topic("after", 1).name)
        assert catalog.next_producer_ids().first == first_ids.first + first_ids.count

    with closing(SqliteCatalog.open(small_disk)) as catalog:
        assert set(catalog.view.topics) == acknowledged


def test_a_catalog_opens_on_a_full_disk(small_disk: Path) -> None:
    with closing(SqliteCatalog.open(small_disk)) as catalog:
        topic = catalog.create_topic("orders", 1, CONFIGS)

    with filled_up(small_disk), closing(SqliteCatalog.open(small_disk)) as catalog:
        assert catalog.view.topics == {"orders": topic}
        create_until_refused(catalog, "during")


def test_a_catalog_that_does_not_fit_is_not_half_created(small_disk: Path) -> None:
    with filled_up(small_disk):
        with pytest.raises(DataDirError, match="full"):
            SqliteCatalog.open(small_disk)
        assert [path.name for path in small_disk.iterdir()] == ["filler"]

    SqliteCatalog.open(small_disk).close()
