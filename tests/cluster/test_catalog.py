"""The catalog in ZooKeeper: the same contract as SQLite's, and concurrent nodes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.storage.catalog.contract import ALL_BROKERS, ANN, ANN_512, CatalogContract, Reopen

from ottla.cluster.catalog import MAX_PRODUCER_ID, SharedCatalog
from ottla.cluster.catalog_nodes import Layout, read_layout
from ottla.cluster.config import ClusterConfig
from ottla.cluster.connecting import Connected, connect
from ottla.core.errors import ApiError, ConfigError, InvalidTopic, TopicAlreadyExists
from ottla.storage.catalog.catalog import edit_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.storage.catalog.catalog import Catalog

    Open = Callable[[], SharedCatalog]


@pytest.fixture
def open_catalog(zookeeper: str) -> Iterator[Open]:
    """Each call opens the catalog as another node of the same cluster."""
    opened: list[Connected] = []

    def open_one() -> SharedCatalog:
        opened.append(connect(ClusterConfig(zookeeper=zookeeper)))
        return opened[-1].catalog

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def reopen(open_catalog: Open) -> Reopen:
    return open_catalog


@pytest.fixture
def catalog(reopen: Reopen) -> Catalog:
    return reopen()


class TestZooKeeperCatalog(CatalogContract):
    pass


def typed_as_a_catalog(catalog: SharedCatalog) -> Catalog:
    """Never called: mypy checks the class against the interface here."""
    return catalog


def test_two_nodes_that_create_the_same_topic_at_once_create_it_once(open_catalog: Open) -> None:
    nodes = [open_catalog() for _ in range(3)]

    def create(node: SharedCatalog) -> str:
        try:
            return node.create_topic("orders", 3).id.text
        except TopicAlreadyExists:
            return "refused"

    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(create, nodes))

    assert answers.count("refused") == 2
    assert {node.view.topic("orders").id.text for node in nodes} == set(answers) - {"refused"}


def test_a_node_that_refreshes_a_topic_knows_that_another_has_deleted_it(open_catalog: Open) -> None:
    one, other = open_catalog(), open_catalog()
    for _ in range(10):
        topic = one.create_topic("t", 1)
        other.refresh_topic("t")
        assert other.view.topic("t") == topic
        one.delete_topic(topic.id)
        other.refresh_topic("t")
        assert "t" not in other.view.topics


def test_colliding_names_are_refused_even_if_another_node_was_faster(open_catalog: Open) -> None:
    first, second = open_catalog(), open_catalog()
    first.create_topic("a.b", 1)

    with pytest.raises(InvalidTopic, match="collide in metric names"):
        second.create_topic("a_b", 1)


def test_concurrent_edits_of_many_nodes_are_all_applied(open_catalog: Open) -> None:
    nodes = [open_catalog() for _ in range(4)]

    def edit(number: int) -> None:
        nodes[number].change_configs(ALL_BROKERS, edit_keys({f"key-{number}": str(number)}))

    with ThreadPoolExecutor() as pool:
        list(pool.map(edit, range(4)))

    assert dict(open_catalog().view.configs[ALL_BROKERS].configs) == {f"key-{n}": str(n) for n in range(4)}


def test_producer_ids_of_many_nodes_never_overlap(open_catalog: Open) -> None:
    nodes = [open_catalog() for _ in range(3)]

    with ThreadPoolExecutor() as pool:
        blocks = list(pool.map(lambda node: node.next_producer_ids(10), nodes * 4))

    assert sorted(block.first for block in blocks) == list(range(0, 120, 10))


def test_exhausted_producer_ids_are_an_error(open_catalog: Open) -> None:
    catalog = open_catalog()
    assert catalog.next_producer_ids(MAX_PRODUCER_ID - 1).first == 0

    with pytest.raises(ApiError, match="producer ids are exhausted"):
        catalog.next_producer_ids(2)


def test_a_listener_must_not_change_the_catalog(open_catalog: Open) -> None:
    catalog = open_catalog()
    refused: list[str] = []

    def change(_: object) -> None:
        try:
            catalog.put_credential(ANN_512)
        except RuntimeError as error:
            refused.append(str(error))

    catalog.listen(change)
    catalog.put_credential(ANN)

    assert refused == ["a listener of the catalog must not change it"]
    assert list(catalog.view.credentials.values()) == [ANN]


def test_config_changes_keep_a_topics_assignment(zookeeper: str) -> None:
    connected = connect(ClusterConfig(zookeeper=zookeeper))
    topic = connected.catalog.create_topic("t", 2, layout=Layout(2, {0: (1, 2)}))
    connected.catalog.change_topic_configs(topic.id, edit_keys({"retention.ms": "1"}))
    connected.catalog.grow_topic(topic.id, 4, [(2, 3), (3, 1)])

    node = connected.mirror.nodes["/topics/t"]
    connected.close()

    assert read_layout(node.data) == Layout(2, {0: (1, 2), 2: (2, 3), 3: (3, 1)})


def test_a_start_without_zookeeper_is_a_one_line_error() -> None:
    nowhere = ClusterConfig(zookeeper="127.0.0.1:1", connect_timeout_ms=200)

    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1"):
        connect(nowhere)
