"""A broker, and archives of its topics."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

from ottla import Admin, Producer
from ottla.broker.embedded import EmbeddedBroker
from ottla.client.blocking.background import Background
from ottla.spark.archive.archiver import Archiver, Done, Rules
from ottla.spark.archive.cover import contents_of
from ottla.spark.archive.places import FolderPlace, Place
from ottla.spark.archive.tables import read

_numbers = itertools.count()
DAY_MS = 24 * 3600 * 1000


class Source:
    """A topic with shortcuts for these tests."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers = servers
        self.topic = topic

    def write(self, numbers: range, **given: Any) -> None:
        with Producer(self.servers) as producer:
            for number in numbers:
                producer.send(self.topic, b"%d" % number, **given)

    @contextmanager
    def archiver(self, place: Place, **rules: Any) -> Iterator[Archiver]:
        link = Background("test", self.servers, {})
        try:
            with place.held() as hold:
                yield Archiver(link, self.topic, place, hold, Rules(**rules))
        finally:
            link.close()

    def archive(self, place: Place, **rules: Any) -> Done:
        with self.archiver(place, **rules) as archiver:
            return archiver.round()


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def source(servers: str) -> Source:
    topic = f"topic-{next(_numbers)}"
    with Admin(servers) as admin:
        admin.create_topic(topic, partitions=2)
    return Source(servers, topic)


@pytest.fixture
def place(tmp_path: Path, source: Source) -> FolderPlace:
    return FolderPlace(tmp_path / source.topic)


def archived(place: Place) -> list[tuple[int, int, bytes]]:
    """Partition, offset and value of all valid rows, by the archive's rules."""
    found = []
    for partition, pieces in contents_of(place.sizes()).pieces.items():
        for piece in pieces:
            for file in piece.stretch.files:
                with place.open(str(file)) as opened:
                    for batch in read(opened, piece.start, piece.end, ["offset", "value"]):
                        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                        named = dict(zip(batch.schema.names, range(2), strict=True))
                        found += [(partition, row[named["offset"]], row[named["value"]]) for row in rows]
    return sorted(found)


def values(place: Place) -> list[int]:
    return sorted(int(value) for _, _, value in archived(place))


def plain(folder: Path) -> pa.Table:
    """What a tool sees that does not know archives."""
    return (
        pyarrow.dataset.dataset(folder, partitioning="hive")
        .to_table()
        .sort_by([("partition", "ascending"), ("offset", "ascending")])
    )
