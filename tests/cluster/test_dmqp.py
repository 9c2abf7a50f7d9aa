"""DMQP in a cluster: one shard map for all nodes, and shards that move with their leader."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient
from tests.dmqp.serving import DmqpBroker, RawShard

from ottla import Admin
from ottla.client.admin.topics import NewTopic
from ottla.core.errors import ApiError, ErrorCode, LeaderNotAvailable, RequestTimedOut
from ottla.core.ids import TopicPartition
from ottla.dmqp import Client, DmqpError
from ottla.dmqp.cluster_server import ClusterDmqpServer
from ottla.dmqp.frame import Status
from ottla.dmqp.sequences import header_of
from ottla.dmqp.shard_log import Cursor
from ottla.records.encode import BatchBuilder

from .brokers import settings, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.broker.topics import TopicState
    from ottla.dmqp.fencing import Producer

COUNT = 3


@pytest.fixture
def nodes(zookeeper: str, tmp_path: Path) -> Iterator[list[DmqpBroker]]:
    with ExitStack() as stack:
        running = [
            stack.enter_context(DmqpBroker(tmp_path / str(number), settings=settings(zookeeper, number)))
            for number in range(1, COUNT + 1)
        ]
        until(lambda: all(len(node.broker.topology.node_ids) == COUNT for node in running))
        yield running


def expose(nodes: list[DmqpBroker], name: str, *replicas: list[int]) -> list[dict[str, object]]:
    with Admin(nodes[0].servers) as admin:
        made = NewTopic(name=name, assignments=dict(enumerate(replicas)), configs={"min.insync.replicas": "2"})
        assert admin.create_topics([made]) == {name: None}
    until(lambda: all(name in node.broker.topics.by_name for node in nodes))
    # At a node that does not serve it.
    answer = nodes[2].client.post(f"/v1/dmqp/{name}", json={})
    assert answer.status_code == 200, answer.text
    shards: list[dict[str, object]] = answer.json()["shards"]
    return shards


def seen(nodes: list[DmqpBroker], name: str) -> list[list[tuple[str, int]]]:
    """The shard map, which every node must agree on."""
    return [
        [(shard["host"], shard["port"]) for shard in node.client.get(f"/v1/dmqp/{name}").json().get("shards", ())]
        for node in nodes
    ]


def test_the_map_is_in_zookeeper_in_the_layout_of_dmq(nodes: list[DmqpBroker], zookeeper: str) -> None:
    shards = expose(nodes, "jobs", [1, 2], [2, 3])
    endpoints = [f"{shard['host']}:{shard['port']}" for shard in shards]
    until(lambda: all(view == seen(nodes, "jobs")[0] for view in seen(nodes, "jobs")))
    client = KazooClient(f"{zookeeper}/dmqp")
    client.start()
    try:
        for shard, endpoint in enumerate(endpoints):
            for kind in ("leader", "replicas"):
                assert client.get_children(f"/topics/jobs/shards/{shard}/{kind}") == [endpoint]
                assert client.exists(f"/topics/jobs/shards/{shard}/{kind}/{endpoint}").ephemeralOwner
        assert client.get("/topics/jobs/sequence_id")[0] == b"0"

        # Registered through a node that does not serve it, and redirected.
        with Client(nodes[1].bootstrap) as consumer:
            sequence = consumer.push("jobs", b"first")
            message = consumer.pop("jobs")
            assert message is not None
            assert (message.data, message.sequence_id) == (b"first", sequence)
            until(lambda: len(client.get_children("/topics/jobs/consumers")) == 1)
        until(lambda: client.get_children("/topics/jobs/consumers") == [])

        assert nodes[1].client.delete("/v1/dmqp/jobs").status_code == 200
        assert client.exists("/topics/jobs") is None
        until(lambda: all(node.client.get("/v1/dmqp/jobs").status_code == 404 for node in nodes))
    finally:
        client.stop()
        client.close()
    until(lambda: _is_refused(int(str(shards[0]["port"]))))


def _is_refused(port: int) -> bool:
    try:
        with RawShard(port) as shard:
            return shard.is_closed()
    except OSError:
        return True


def test_a_push_is_acknowledged_after_replication_to_the_isr(nodes: list[DmqpBroker]) -> None:
    shards = expose(nodes, "copied", [1, 2], [3, 2])
    for index, (shard, leader) in enumerate(zip(shards, (nodes[0], nodes[2]), strict=True)):
        before = leader.broker.topics.partition("copied", index).log.next_offset
        with RawShard(int(str(shard["port"]))) as connection:
            assert connection.push(b"v").status == Status.OK
        copy = nodes[1].broker.topics.partition("copied", index)
        assert copy.log.next_offset == before + 1


def test_shards_move_with_their_leader_and_nothing_is_delivered_twice(nodes: list[DmqpBroker]) -> None:
    shards = expose(nodes, "moved", [1, 2, 3], [2, 3, 1])
    with Client(nodes[2].bootstrap) as client:
        for number in range(6):
            assert client.push("moved", b"%d" % number) == number
        first = [client.pop("moved") for _ in range(3)]
    assert [each.data for each in first if each] == [b"0", b"1", b"2"]

    with Admin(nodes[2].servers) as admin:
        moved = admin.reassign_partitions({TopicPartition("moved", 0): [3, 2]})
        assert moved == {TopicPartition("moved", 0): None}
        until(lambda: admin.describe_topic("moved").partitions[0].leader == 3)
    before = [(shard["host"], shard["port"]) for shard in shards]
    until(lambda: all(view and view != before for view in seen(nodes, "moved")))
    until(lambda: _is_refused(int(str(shards[0]["port"]))))

    with Client(nodes[0].bootstrap) as client:
        rest = []
        while len(rest) < 3:
            try:
                message = client.pop("moved")
            except DmqpError:
                continue
            assert message is not None
            rest.append(message.data)
        assert rest == [b"3", b"4", b"5"]
        assert client.pop("moved") is None
        assert client.push("moved", b"last") == 6


def test_a_node_that_was_fenced_for_a_while_releases_its_claim(
    nodes: list[DmqpBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    expose(nodes, "claimed", [1, 3])
    until(lambda: "claimed" in nodes[0].server._topics)
    server = nodes[0].server
    assert isinstance(server, ClusterDmqpServer)
    is_in_charge = server._is_in_charge

    def fenced_when_it_lost_the_leadership(state: TopicState) -> bool:
        if not is_in_charge(state):
            server._lost_claims()
        return is_in_charge(state)

    monkeypatch.setattr(server, "_is_in_charge", fenced_when_it_lost_the_leadership)

    with Admin(nodes[2].servers) as admin:
        admin.reassign_partitions({TopicPartition("claimed", 0): [3]})

    until(lambda: "claimed" in nodes[2].server._topics)
    monkeypatch.undo()


def test_addresses_that_could_not_be_published_are_published_later(
    nodes: list[DmqpBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = nodes[2].server
    assert isinstance(server, ClusterDmqpServer)
    shards = server._shards
    announce, failures = shards.announce, iter([RequestTimedOut("no answer")])

    def announced(*given: Any) -> None:
        for failure in failures:
            raise failure
        announce(*given)

    monkeypatch.setattr(shards, "announce", announced)

    expose(nodes, "published", [3, 1])

    until(lambda: all(len(view) == 1 for view in seen(nodes, "published")))


def test_a_claim_whose_release_fails_is_released_later(
    nodes: list[DmqpBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    expose(nodes, "stuck", [1, 3])
    until(lambda: "stuck" in nodes[0].server._topics)
    server = nodes[0].server
    assert isinstance(server, ClusterDmqpServer)
    shards = server._shards
    release, failures = shards.release, iter([RequestTimedOut("no answer")])

    def released(topic: str, node_id: int) -> None:
        for failure in failures:
            raise failure
        release(topic, node_id)

    monkeypatch.setattr(shards, "release", released)

    with Admin(nodes[2].servers) as admin:
        admin.reassign_partitions({TopicPartition("stuck", 0): [3]})

    until(lambda: "stuck" in nodes[2].server._topics)


def test_a_topic_that_is_deleted_is_no_longer_exposed(nodes: list[DmqpBroker]) -> None:
    expose(nodes, "gone", [2, 1])
    assert nodes[0].client.delete("/v1/topics/gone").status_code == 200
    until(lambda: all(node.client.get("/v1/dmqp").json()["topics"] == [] for node in nodes))


def test_a_late_commit_of_a_former_leader_does_not_rewind_the_cursor(
    nodes: list[DmqpBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    expose(nodes, "late", [1, 2, 3])
    with Client(nodes[0].bootstrap) as client:
        for number in range(4):
            assert client.push("late", b"%d" % number) == number
        assert client.pop("late") is not None
    [log] = nodes[0].server._topics["late"]._logs
    # As if its request had been in flight all that time.
    monkeypatch.setattr(log, "_check_in_charge", lambda: None)
    with Admin(nodes[2].servers) as admin:
        admin.reassign_partitions({TopicPartition("late", 0): [3, 2]})
        until(lambda: admin.describe_topic("late").partitions[0].leader == 3)
    until(lambda: "late" in nodes[2].server._topics)
    nodes[2].run(nodes[2].server._topics["late"]._logs[0].commit(Cursor(3, 3)))

    with pytest.raises(ApiError) as refused:
        nodes[0].run(log.commit(Cursor(2, 2)))
    assert refused.value.code == ErrorCode.FENCED_LEADER_EPOCH

    with Admin(nodes[1].servers) as admin:
        assert admin.group_offsets("__dmqp.late")[TopicPartition("late", 0)].offset == 3


def test_a_push_of_a_former_server_is_refused_by_the_leader_of_the_shard(
    nodes: list[DmqpBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    expose(nodes, "fenced", [1, 3], [2, 3])
    with Client(nodes[0].bootstrap) as client:
        assert [client.push("fenced", b"v") for _ in range(2)] == [0, 1]
    log = nodes[0].server._topics["fenced"]._logs[1]
    # As if it had not noticed that its session has ended.
    monkeypatch.setattr(log, "_check_in_charge", lambda: None)
    with Admin(nodes[2].servers) as admin:
        admin.reassign_partitions({TopicPartition("fenced", 0): [3]})
        until(lambda: admin.describe_topic("fenced").partitions[0].leader == 3)
    until(lambda: "fenced" in nodes[2].server._topics)
    late = BatchBuilder()
    late.append(0, None, b"late", header_of(2))

    with pytest.raises(ApiError) as refused:
        nodes[0].run(log.append(late))
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH

    until(lambda: nodes[2].client.get("/v1/dmqp/fenced").json().get("shards"))
    with Client(nodes[2].bootstrap) as client:
        assert [client.push("fenced", b"v") for _ in range(2)] == [2, 3]


def test_a_push_is_not_taken_for_an_earlier_one_whose_outcome_is_unknown(
    nodes: list[DmqpBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = expose(nodes, "doubted", [1, 3])
    [log] = nodes[0].server._topics["doubted"]._logs
    produce, fence = log._produce, log._fence

    async def unanswered(batch: bytearray) -> None:
        await produce(batch)
        raise RequestTimedOut("no answer")

    async def refused(_shard: int) -> Producer:
        raise LeaderNotAvailable("no leader")

    with RawShard(int(str(shards[0]["port"]))) as shard:
        with monkeypatch.context() as patched:
            patched.setattr(log, "_produce", unanswered)
            assert shard.push(b"first").status == Status.EIO
        with monkeypatch.context() as patched:
            patched.setattr(fence, "renew", refused)
            assert shard.push(b"second").status == Status.EIO
        assert shard.push(b"third").status == Status.OK

        assert [shard.pop().payload, shard.pop().payload] == [b"first", b"third"]


def test_after_a_leadership_gap_a_topic_is_served_from_its_committed_cursor(
    nodes: list[DmqpBroker],
) -> None:
    expose(nodes, "regained", [1, 2, 3])
    until(lambda: "regained" in nodes[0].server._topics)
    served, cluster = nodes[0].server._topics["regained"], nodes[0].broker.cluster
    assert cluster is not None
    key = next(state.key for state in cluster.view.partitions.values() if state.topic == "regained")
    # As if leadership had been lost and regained between two checks.
    nodes[0].run(cluster._change(key, lambda state: replace(state, leader_epoch=state.leader_epoch + 2)))

    until(lambda: nodes[0].server._topics.get("regained") not in (None, served))
    [log] = nodes[0].server._topics["regained"]._logs
    assert log.epoch == cluster.view.partitions[key].leader_epoch
