"""The same admin requests to Ottla and a real broker: responses differ only where listed here."""

import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.raw_client import RawClient
from ottla.broker.config import BrokerConfig
from ottla.broker.embedded import EmbeddedBroker
from ottla.broker.settings import Settings
from ottla.net.config import NetConfig
from ottla.wire.codec import RequestFor
from ottla.wire.declare import NO_UUID, Response
from ottla.wire.messages import create_partitions, create_topics, delete_records, delete_topics
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

NODE: Final = 1
STRANGER: Final = bytes(15) + b"\1"
PATIENCE_S: Final = 20
TOPICS: Final = {"five": 5, "two": 2, "one": 1, "dotted.name": 1}
DIFFERENT: Final = {"topic_id", "cluster_id", "host", "port", "log_dir", "total_bytes", "usable_bytes"}
"""Fields of which only it is compared whether there is anything in them."""
OURS: Final = {"error_message", "flush.ms", "min.insync.replicas"}
"""Refusals are in our own words. The two configs have another default here, and there another source."""

SET, DELETE, APPEND = 0, 1, 2

Answer = dict[str, Any]


class Both(NamedTuple):
    kafka: RawClient
    ottla: RawClient

    def ask(self, request: RequestFor[Response], version: int) -> tuple[Answer, Answer]:
        return comparable(self.kafka.ask(request, version)), comparable(self.ottla.ask(request, version))


def comparable(response: Response) -> Answer:
    """As plain values, in an order that does not depend on Kafka's hash maps."""
    plain = _reduced(msgspec.to_builtins(response))
    assert isinstance(plain, dict)
    return plain


def _reduced(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: bool(one) and one != "A" * 22 + "==" if key in DIFFERENT else _reduced(one)
            for key, one in value.items()
            if key not in OURS
        }
    if isinstance(value, list | tuple):
        return sorted(
            (_reduced(one) for one in value if not (isinstance(one, dict) and one.get("name") in OURS)), key=str
        )
    return value


@pytest.fixture(scope="module")
def both(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    settings = Settings(broker=BrokerConfig(node_id=NODE), net=NetConfig(port=0))
    with (
        KafkaBroker(kafka, tmp_path_factory.mktemp("kafka")) as theirs,
        EmbeddedBroker(tmp_path_factory.mktemp("ottla"), settings) as ours,
        RawClient(theirs.bootstrap) as their_client,
        RawClient(ours.bootstrap_servers) as our_client,
    ):
        both = Both(their_client, our_client)
        both.ask(creating(*(topic(name, count) for name, count in TOPICS.items())), 7)
        both.ask(creating(topic("compacted", configs={"cleanup.policy": "compact"})), 7)
        settle(both, {*TOPICS, "compacted"})
        yield both


def settle(both: Both, expected: set[str]) -> None:
    """Kafka's broker learns of a topic a moment after the answer, and has its partitions a moment later."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        known = {one.name for one in both.kafka.ask(MetadataRequest(topics=None), 12).topics}
        [folder] = both.kafka.ask(DescribeLogDirsRequest(topics=None), 4).results
        if expected <= known and expected <= {one.name for one in folder.topics}:
            return
        time.sleep(0.05)
    raise TimeoutError("Kafka does not know its topics")


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    placed: dict[int, tuple[int, ...]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=tuple(
            create_topics.CreatableReplicaAssignment(partition_index=at, broker_ids=ids)
            for at, ids in (placed or {}).items()
        ),
        configs=tuple(create_topics.CreatableTopicConfig(name=key, value=one) for key, one in (configs or {}).items()),
    )


def creating(*topics: create_topics.CreatableTopic, validate_only: bool = False) -> create_topics.CreateTopicsRequest:
    return create_topics.CreateTopicsRequest(topics=topics, validate_only=validate_only)


def growing(*topics: tuple[str, int, list[tuple[int, ...]] | None]) -> create_partitions.CreatePartitionsRequest:
    wanted = tuple(
        create_partitions.CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=None
            if placed is None
            else tuple(create_partitions.CreatePartitionsAssignment(broker_ids=ids) for ids in placed),
        )
        for name, count, placed in topics
    )
    return create_partitions.CreatePartitionsRequest(topics=wanted, timeout_ms=5000, validate_only=True)


def deleting(*topics: tuple[str | None, bytes]) -> delete_topics.DeleteTopicsRequest:
    states = tuple(delete_topics.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics)
    return delete_topics.DeleteTopicsRequest(
        topic_names=tuple(name or "" for name, _ in topics), topics=states, timeout_ms=5000
    )


def cutting(name: str, *at: tuple[int, int]) -> delete_records.DeleteRecordsRequest:
    partitions = tuple(delete_records.DeleteRecordsPartition(partition_index=one, offset=to) for one, to in at)
    wanted = delete_records.DeleteRecordsTopic(name=name, partitions=partitions)
    return delete_records.DeleteRecordsRequest(topics=(wanted,), timeout_ms=5000)


def paging(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    at = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
    topics = tuple(TopicRequest(name=name) for name in names)
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=at)


def cluster(endpoint_type: int = 1, *, operations: bool = False) -> DescribeClusterRequest:
    return DescribeClusterRequest(include_cluster_authorized_operations=operations, endpoint_type=endpoint_type)


BAD_COUNTS = [
    topic("n", 0),
    topic("n-", -2),
    topic("r", 1, 0),
    topic("r-", 1, -2),
    topic("r3", 1, 3),
    topic("nr", 0, 3),
]
BAD_PLACES = [
    topic("p1", -1, -1, {0: (7,)}),
    topic("p2", -1, -1, {0: (NODE, NODE)}),
    topic("p3", -1, -1, {0: ()}),
    topic("p4", -1, -1, {1: (NODE,)}),
    topic("p5", 1, -1, {0: (NODE,)}),
    topic("p6", -1, 1, {0: (NODE,)}),
    topic("p7", -1, -1, {0: (NODE,), 1: (NODE, 7)}),
    topic("p8", -1, -1, {-1: (NODE,)}),
]
BAD_CONFIGS = [
    topic("c1", configs={"no.such": "1"}),
    topic("c2", configs={"retention.ms": "soon"}),
    topic("c3", configs={"retention.ms": None}),
    topic("c4", 0, 0, configs={"no.such": "1"}),
]

# None of them changes anything that another would see.
REQUESTS = {
    "taken names": (creating(topic("one"), topic("two", 0, 9, configs={"no.such": "1"})), 7),
    "bad names": (creating(*map(topic, ("", ".", "..", "a b", "x" * 250, "ü", "__cluster_metadata"))), 7),
    "clashing names": (creating(topic("dotted_name")), 7),
    "repeated names": (creating(topic("twice"), topic("twice", 2), topic("one")), 7),
    "bad counts": (creating(*BAD_COUNTS), 7),
    "too many": (creating(topic("many", 10_001)), 7),
    "too many together": (creating(topic("most", 10_000), topic("another", -1)), 7),
    "bad places": (creating(*BAD_PLACES), 7),
    "bad configs": (creating(*BAD_CONFIGS), 7),
    "bad counts, v2": (creating(*BAD_COUNTS), 2),
    "bad counts, v5": (creating(*BAD_COUNTS), 5),
    "growth": (growing(("five", 6, None), ("two", 4, [(NODE,), (NODE,)])), 3),
    "no growth": (growing(("five", 5, None), ("two", 1, None), ("one", -1, None), ("nobody", 3, None)), 3),
    "badly placed growth": (growing(("five", 6, [(7,)]), ("two", 4, [(NODE,)]), ("one", 2, [()])), 2),
    "doubly placed growth": (growing(("five", 6, [(NODE, NODE)]), ("two", 3, [])), 1),
    "repeated growth": (growing(("five", 6, None), ("five", 7, None), ("two", 3, None)), 0),
    "deletion by nothing": (deleting((None, NO_UUID), ("one", STRANGER), (None, STRANGER), ("nobody", NO_UUID)), 6),
    "repeated deletion": (deleting(("one", NO_UUID), ("one", NO_UUID)), 6),
    "deletion by name": (deleting(("nobody", NO_UUID), ("", NO_UUID), ("one", NO_UUID), ("one", NO_UUID)), 5),
    "cuts": (cutting("five", (0, -1), (1, 0), (2, 1), (3, -2), (9, 0), (-1, 0)), 2),
    "cut of nothing": (cutting("nobody", (0, 0)), 1),
    "compacted cut": (cutting("compacted", (0, -1)), 0),
    "page": (paging("two", "nobody", "a b", "five", "five"), 0),
    "short page": (paging("two", "nobody", "five", limit=4), 0),
    "full page": (paging("two", "five", limit=5), 0),
    "empty page": (paging("two", "five", limit=0), 0),
    "second page": (paging("two", "nobody", "five", limit=4, cursor=("five", 4)), 0),
    "page past the end": (paging("two", "five", cursor=("five", 99)), 0),
    "page of nobody": (paging("two", "nobody", "five", cursor=("nobody", 2)), 0),
    "strange cursor": (paging("two", cursor=("zzz", 0)), 0),
    "negative cursor": (paging("two", cursor=("two", -1)), 0),
    "everything": (paging(limit=3), 0),
    "everything from somewhere": (paging(limit=3, cursor=("oo", 3)), 0),
    "cluster": (cluster(), 0),
    "cluster with operations": (cluster(operations=True), 2),
    "controllers": (cluster(2), 1),
    "strange endpoint": (cluster(9), 2),
    "disk": (DescribeLogDirsRequest(topics=(DescribableLogDirTopic(topic="two", partitions=(0, 1, 9)),)), 4),
    "disk of nothing": (DescribeLogDirsRequest(topics=()), 1),
    "list of topics": (ListConfigResourcesRequest(resource_types=(2,)), 1),
    "list of brokers": (ListConfigResourcesRequest(resource_types=(4, 4)), 1),
    "list of client metrics": (ListConfigResourcesRequest(), 0),
    "list of nothing that there is": (ListConfigResourcesRequest(resource_types=(4, 7)), 1),
    "metadata by id, too early": (MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=STRANGER),)), 11),
    "metadata with operations": (
        MetadataRequest(
            topics=(MetadataRequestTopic(name="two"), MetadataRequestTopic(name="nobody")),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        ),
        10,
    ),
}


@pytest.mark.parametrize("what", REQUESTS)
def test_both_answer_the_same(both: Both, what: str) -> None:
    theirs, ours = both.ask(*REQUESTS[what])

    assert ours == theirs


@pytest.mark.parametrize("version", range(2, 8))
def test_both_create_a_topic(both: Both, version: int) -> None:
    request = creating(topic(f"new-{version}", 2, configs={"retention.ms": "1000"}), topic(f"usual-{version}", -1, -1))
    theirs, ours = both.ask(request, version)

    assert ours == theirs


@pytest.mark.parametrize("version", range(1, 7))
def test_both_delete_a_topic(both: Both, version: int) -> None:
    name = f"doomed-{version}"
    both.ask(creating(topic(name)), 7)
    settle(both, {name})
    theirs, ours = both.ask(deleting((name, NO_UUID)), version)

    assert ours == theirs


@pytest.mark.parametrize("name", ["", str(NODE)])
def test_both_keep_a_broker_config_that_they_do_not_know(both: Both, name: str) -> None:
    def altering(operation: int, value: str | None, key: str = "my.plugin.level") -> IncrementalAlterConfigsRequest:
        config = AlterableConfig(name=key, config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=4, resource_name=name, configs=(config,))
        return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

    for request in (altering(SET, "5"), altering(APPEND, "5", "my.list"), altering(DELETE, None, "my.other")):
        theirs, ours = both.ask(request, 1)
        assert ours == theirs
    wanted = DescribeConfigsResource(resource_type=4, resource_name=name, configuration_keys=("my.plugin.level",))
    shown = DescribeConfigsRequest(resources=(wanted,), include_synonyms=True)
    deadline = time.monotonic() + PATIENCE_S
    while not (theirs := comparable(both.kafka.ask(shown, 4)))["results"][0]["configs"]:
        assert time.monotonic() < deadline
    assert comparable(both.ottla.ask(shown, 4)) == theirs
    both.ask(altering(DELETE, None), 1)


def test_groups_with_configs_are_listed_by_both(both: Both) -> None:
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=SET, value="earliest")
    resource = AlterConfigsResource(resource_type=32, resource_name="not-yet", configs=(config,))
    both.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
    groups = ListConfigResourcesRequest(resource_types=(32,))
    deadline = time.monotonic() + PATIENCE_S
    while not (theirs := comparable(both.kafka.ask(groups, 1)))["config_resources"]:
        assert time.monotonic() < deadline
    assert comparable(both.ottla.ask(groups, 1)) == theirs


def test_only_kafka_makes_up_an_id_for_a_topic_that_it_does_not_create(both: Both) -> None:
    theirs, ours = both.ask(creating(topic("imagined", 2), validate_only=True), 7)

    assert theirs["topics"][0].pop("topic_id")
    assert not ours["topics"][0].pop("topic_id")
    assert ours == theirs
