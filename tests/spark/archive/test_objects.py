"""An archive in an object store: the same, with a lease instead of a lock."""

import json

import pytest

pytest.importorskip("obstore", reason="obstore is not installed: pip install 'ottla[s3]'")

import obstore
from obstore.store import MemoryStore

from ottla.spark.archive.errors import ArchiveInUse
from ottla.spark.archive.merging import TOGETHER
from ottla.spark.archive.objects import LEASE_S, ObjectPlace

from .conftest import Source, values


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_it_is_archived_and_merged_as_in_a_folder(source: Source) -> None:
    place = ObjectPlace(MemoryStore())
    for number in range(TOGETHER):
        source.write(range(number * 10, number * 10 + 10), partition=0, timestamp_ms=1)
        done = source.archive(place)
    assert done.merged == TOGETHER
    assert len(place.sizes()) == 1
    assert values(place) == list(range(TOGETHER * 10))


def test_a_missing_file_is_reported() -> None:
    with pytest.raises(FileNotFoundError):
        ObjectPlace(MemoryStore()).open("date=x/y.parquet")


def test_only_the_lease_holder_may_write_until_its_lease_expires() -> None:
    store, clock = MemoryStore(), Clock()
    with ObjectPlace(store, clock).held() as first:
        clock.now += LEASE_S / 2
        first.confirm()
        clock.now += LEASE_S - 1
        with pytest.raises(ArchiveInUse, match="1 s more"), ObjectPlace(store, clock).held():
            pass
        clock.now += 2
        with ObjectPlace(store, clock).held() as second:
            with pytest.raises(ArchiveInUse, match="taken over"):
                first.confirm()
            second.confirm()


def test_a_lease_is_released_at_the_end() -> None:
    store = MemoryStore()
    with ObjectPlace(store).held():
        assert json.loads(bytes(obstore.get(store, "_lease.json").bytes()))["holder"]
    with ObjectPlace(store).held():
        pass
