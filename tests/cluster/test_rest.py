"""The REST API of any node shows and changes the whole cluster."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.broker.raw_client import RawClient
from tests.broker.sharing import ShareMember
from tests.rest.serving import HttpBroker

import ottla
from ottla.client.errors import ProducerFenced
from ottla.cluster.nodes import partition_data, partition_path
from ottla.cluster.operations import Put
from ottla.core.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

from .brokers import settings, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

VALUES = [f"v{number}" for number in range(30)]


@contextmanager
def doors(zookeeper: str, folder: Path, count: int = 3) -> Iterator[list[HttpBroker]]:
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(HttpBroker(folder / str(number), settings=settings(zookeeper, number, f"r{number}")))
            for number in range(1, count + 1)
        ]
        until(lambda: all(len(node.broker.topology.node_ids) == count for node in nodes))
        yield nodes


@pytest.fixture(scope="module")
def nodes(zookeeper_server: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[HttpBroker]]:
    folder = tmp_path_factory.mktemp("rest")
    address = zookeeper_server.address  # type: ignore[attr-defined]
    with doors(f"{address}/{folder.name}", folder) as running:
        yield running


def create(nodes: list[HttpBroker], name: str, **wanted: object) -> None:
    """One partition on each node, without a copy elsewhere."""
    made = nodes[0].client.post("/v1/topics", json={"name": name, "partitions": 3, "replication_factor": 1, **wanted})
    assert made.status_code == 201, made.text
    until(lambda: all(name in node.broker.topics.by_name for node in nodes))
    until(lambda: all(len({part["leader"] for part in shown(node.client, name)["partitions"]}) == 3 for node in nodes))


def shown(http: httpx.Client, name: str) -> dict[str, list[dict[str, int]]]:
    found: dict[str, list[dict[str, int]]] = http.get(f"/v1/topics/{name}").json()
    return found


def write(http: httpx.Client, name: str) -> None:
    messages = [{"value": value, "partition": number % 3} for number, value in enumerate(VALUES)]
    written = http.post(f"/v1/topics/{name}/messages", json={"messages": messages})
    assert (written.status_code, written.json()["written"]) == (200, len(VALUES)), written.text


def test_any_node_writes_and_reads_partitions_led_by_others(nodes: list[HttpBroker]) -> None:
    create(nodes, "all")
    write(nodes[1].client, "all")
    for node in nodes:
        topic = shown(node.client, "all")
        assert [(part["start_offset"], part["end_offset"]) for part in topic["partitions"]] == [(0, 10)] * 3
        assert all(part["size_bytes"] > 0 for part in topic["partitions"])
        [listed] = [each for each in node.client.get("/v1/topics").json()["topics"] if each["name"] == "all"]
        assert (listed["messages"], listed["size_bytes"]) == (30, topic["size_bytes"])

        page = node.client.get("/v1/topics/all/messages").json()
        assert sorted(each["value"] for each in page["messages"]) == sorted(VALUES)
        assert page["is_end"]
        newest = node.client.get("/v1/topics/all/messages", params={"last": 1, "limit": 9}).json()
        assert sorted(each["value"] for each in newest["messages"]) == ["v27", "v28", "v29"]
        rest = node.client.get("/v1/topics/all/messages", params={"cursor": newest["next"]}).json()
        assert (rest["messages"], rest["is_end"]) == ([], True)


def test_a_tail_at_any_node_has_records_of_all_nodes(nodes: list[HttpBroker]) -> None:
    create(nodes, "tailed")
    with nodes[2].client.stream("GET", "/v1/topics/tailed/tail") as tail:
        lines = tail.iter_lines()
        assert next(lines) == "retry: 1000"
        write(nodes[0].client, "tailed")
        found = 0
        while found < len(VALUES):
            found += next(lines).startswith("event: message")


def test_groups_are_described_and_reset_from_any_node(nodes: list[HttpBroker]) -> None:
    create(nodes, "grouped")
    write(nodes[0].client, "grouped")
    until(lambda: nodes[0].client.get("/v1/consumers/g0/messages", params={"topic": "grouped"}).status_code == 200)
    for number in range(4):
        read = nodes[number % 3].client.get(f"/v1/consumers/g{number}/messages", params={"topic": "grouped"}).json()
        assert sorted(each["value"] for each in read["messages"]) == sorted(VALUES)
        done = nodes[(number + 1) % 3].client.post(f"/v1/consumers/g{number}/commit", json=read["commit"])
        assert done.status_code == 200, done.text
    for node in nodes:
        groups = {each["id"]: each["lag"] for each in node.client.get("/v1/groups").json()["groups"]}
        assert groups == {f"g{number}": 0 for number in range(4)}
    for node in nodes:
        moved = node.client.post("/v1/groups/g1/reset", json={"to": "by", "by": -2})
        assert moved.status_code == 200, moved.text
    assert nodes[0].client.get("/v1/groups/g1").json()["lag"] == 18
    assert [node.client.delete(f"/v1/groups/g{number}").status_code for number, node in enumerate(nodes)] == [200] * 3
    assert [each["id"] for each in nodes[2].client.get("/v1/groups").json()["groups"]] == ["g3"]


def test_share_groups_are_described_and_reset_from_any_node(nodes: list[HttpBroker]) -> None:
    create(nodes, "shared-out")
    write(nodes[0].client, "shared-out")
    topic_id = nodes[0].broker.topics.by_name["shared-out"].raw_id
    with RawClient(coordinator_of(nodes, "workers")) as client:
        ShareMember(client, "workers", "shared-out", topic_id).heartbeat(epoch=-1)
    for number, node in enumerate(nodes):
        goal = {"to": "offsets", "offsets": [{"topic": "shared-out", "partition": 1, "offset": 3 + number}]}
        moved = node.client.post("/v1/groups/workers/reset", json=goal)
        assert moved.status_code == 200, moved.text
        for other in nodes:
            seen = other.client.get("/v1/groups/workers").json()
            [place] = [each for each in seen["offsets"] if each["partition"] == 1]
            assert (seen["type"], place["committed"], place["end"]) == ("share", 3 + number, 10)


def coordinator_of(nodes: list[HttpBroker], group: str) -> str:
    """The address of the group's coordinator, once it is ready."""
    found: list[str] = []

    def is_found() -> bool:
        with RawClient(nodes[0].servers) as client:
            [told] = client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))).coordinators
        if told.error_code == ErrorCode.NONE:
            found.append(f"{told.host}:{told.port}")
            return nodes[0].client.get(f"/v1/groups/{group}").status_code == 404
        return False

    until(is_found)
    return found[-1]


def test_transactions_are_described_and_aborted_from_any_node(nodes: list[HttpBroker]) -> None:
    create(nodes, "transacted")
    names = [f"transacted-{number}" for number in range(4)]
    with ExitStack() as stack:
        for name in names:
            producer = stack.enter_context(ottla.Producer(nodes[0].servers, transactional_id=name))
            stack.enter_context(pytest.raises(ProducerFenced))
            stack.enter_context(producer.transaction())
            producer.send("transacted", b"never seen", partition=0)
            producer.flush()
        for node in nodes:
            listed = node.client.get("/v1/transactions", params={"state": "Ongoing"}).json()["transactions"]
            assert [each["id"] for each in listed] == names
            shown_ones = [node.client.get(f"/v1/transactions/{name}").json() for name in names]
            assert [each["partitions"] for each in shown_ones] == [[{"topic": "transacted", "partition": 0}]] * 4
        for number, name in enumerate(names):
            assert nodes[number % 3].client.delete(f"/v1/transactions/{name}").status_code == 200
        assert nodes[0].client.get("/v1/transactions", params={"state": "Ongoing"}).json() == {"transactions": []}


def test_metrics_are_per_node(nodes: list[HttpBroker]) -> None:
    create(nodes, "measured")
    told = [node.client.get("/metrics").text for node in nodes]
    counted = [text.count('ottla_log_size_bytes{topic="measured"') for text in told]
    assert counted == [1, 1, 1]


def test_the_cluster_is_listed_with_the_state_of_each_node(nodes: list[HttpBroker]) -> None:
    create(nodes, "listed")
    for node in nodes:
        brokers = node.client.get("/v1/cluster").json()["brokers"]
        assert [(each["broker_id"], each["rack"], each["state"]) for each in brokers] == [
            (1, "r1", "up"),
            (2, "r2", "up"),
            (3, "r3", "up"),
        ]
        assert all(each["total_bytes"] >= each["usable_bytes"] > 0 for each in brokers)
        assert all(each["leads"] >= 1 and each["in_sync"] == each["holds"] >= each["leads"] for each in brokers)


def test_the_reason_for_a_missing_leader_is_shown(zookeeper: str, tmp_path: Path) -> None:
    with doors(zookeeper, tmp_path) as nodes:
        create(nodes, "t")
        cluster = nodes[0].broker.cluster
        assert cluster is not None
        state = next(state for state in cluster.view.partitions.values() if state.topic == "t")
        # As if its only in-sync replica had restarted with another folder.
        lost = replace(state, isr=(state.leader,), folders=((state.leader, "another folder"),))
        cluster._connected.store.commit([Put(partition_path(state.key), partition_data(lost), state.version)])
        until(lambda: nodes[0].client.get("/health").json()["partitions_without_leader"] == 1)

        [told] = nodes[0].client.get("/v1/cluster").json()["partitions_without_leader"]
        assert (told["topic"], told["partition"], told["replaced"]) == ("t", state.partition, [state.leader])
        assert "--unclean" in told["problem"]
        shown = 'ottla_partitions_without_leader{reason="data_folder_replaced"} 1'
        assert shown in nodes[0].client.get("/metrics").text


def test_an_unreachable_node_is_named(zookeeper: str, tmp_path: Path) -> None:
    with doors(zookeeper, tmp_path) as nodes:
        create(nodes, "t")
        write(nodes[0].client, "t")
        parts = {part["leader"]: part["partition"] for part in shown(nodes[0].client, "t")["partitions"]}
        nodes[1].run(_hang_up(nodes[1]))

        asked = nodes[0].client
        refused = asked.get("/v1/topics/t/messages", params={"partition": parts[2]})
        assert (refused.status_code, refused.json()["code"]) == (503, "BROKER_NOT_AVAILABLE")
        assert refused.json()["detail"].startswith("node 2 is unreachable: cannot connect to 127.0.0.1:")
        both = [{"value": "x", "partition": parts[node]} for node in (1, 2)]
        refused = asked.post("/v1/topics/t/messages", json={"messages": both})
        assert (refused.status_code, refused.json()["written"]) == (503, 1)
        assert "node 2" in refused.json()["detail"]
        assert asked.get("/v1/topics/t/messages", params={"partition": parts[3]}).status_code == 200
        states = {each["broker_id"]: each["state"] for each in asked.get("/v1/cluster").json()["brokers"]}
        assert states == {1: "up", 2: "unreachable", 3: "up"}


async def _hang_up(node: HttpBroker) -> None:
    """Close its port; its session stays open."""
    await node.broker.listener.stop(timeout_s=0)
