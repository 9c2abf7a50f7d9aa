"""A broker, and tables of its topics."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from ottla import Admin, Producer  # noqa: E402 - after the check for pyiceberg
from ottla.broker.embedded import EmbeddedBroker  # noqa: E402
from ottla.client.blocking.background import Background  # noqa: E402
from ottla.lake.catalogs import LakeSettings, open_catalog  # noqa: E402
from ottla.lake.names import dead_letters_of, table_of  # noqa: E402
from ottla.lake.values import ValueSettings  # noqa: E402
from ottla.lake.writer import Done, TopicSettings, TopicWriter  # noqa: E402

_numbers = itertools.count()
JSON = ValueSettings(format="json", columns="id bigint, name string")


class Lake:
    """A topic and its tables, with shortcuts for these tests."""

    def __init__(self, servers: str, topic: str, settings: LakeSettings) -> None:
        self.servers = servers
        self.topic = topic
        self.settings = settings
        self.catalog = open_catalog(settings)

    def produce(self, *values: bytes | None, **given: Any) -> None:
        with Producer(self.servers) as producer:
            for value in values:
                producer.send(self.topic, value, **{"partition": 0, **given})

    def numbers(self, numbers: range, partition: int = 0) -> None:
        self.produce(*(b'{"id":%d,"name":"n%d"}' % (each, each) for each in numbers), partition=partition)

    @contextmanager
    def writer(self, values: ValueSettings = JSON, **given: Any) -> Iterator[TopicWriter]:
        link = Background("test", self.servers, {})
        topic = TopicSettings(topic=self.topic, namespace=self.settings.namespace, values=values, **given)
        writer = TopicWriter(link, open_catalog(self.settings), topic)
        try:
            yield writer
        finally:
            writer.close()
            link.close()

    def append(self, values: ValueSettings = JSON, **given: Any) -> Done:
        with self.writer(values, **given) as writer:
            return writer.round()

    @property
    def table_name(self) -> tuple[str, str]:
        namespace, table = table_of(self.topic, self.settings.namespace)
        return namespace, table

    @property
    def table(self) -> Any:
        return self.catalog.load_table(self.table_name)

    def rows(self) -> pa.Table:
        return self.table.scan().to_arrow().sort_by([("_partition", "ascending"), ("_offset", "ascending")])

    def ids(self) -> list[int]:
        return sorted(self.rows()["id"].to_pylist())

    def dead_letters(self) -> list[dict[str, Any]]:
        table = self.catalog.load_table(tuple(dead_letters_of(self.topic, self.settings.namespace)))
        return table.scan().to_arrow().sort_by("_offset").to_pylist()


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def lake(servers: str, tmp_path: Path) -> Lake:
    topic = f"topic.{next(_numbers)}"
    with Admin(servers) as admin:
        admin.create_topic(topic, partitions=2)
    return Lake(servers, topic, LakeSettings(folder=tmp_path / "lake"))
