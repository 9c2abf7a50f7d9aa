"""Groups over REST: members, lag, offset resets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer
from tests.broker.raw_client import RawClient
from tests.broker.sharing import ACCEPT, ShareMember

from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from .serving import HttpBroker

PATIENCE_S = 20.0


@pytest.fixture
def numbered(http: httpx.Client, topic: str) -> str:
    """Ten messages in partition 0, with timestamps 1000, 1100 and so on."""
    messages = [{"value": str(n), "partition": 0, "timestamp": 1000 + 100 * n} for n in range(10)]
    http.post(f"/v1/topics/{topic}/messages", json={"messages": messages})
    return topic


@pytest.fixture
def group(http: httpx.Client, numbered: str) -> str:
    """A group named like the topic that has read four messages."""
    offsets = [{"topic": numbered, "partition": 0, "offset": 4}]
    assert http.post(f"/v1/consumers/{numbered}/commit", json={"offsets": offsets}).status_code == 200
    return numbered


@pytest.fixture
def member(served: HttpBroker, group: str) -> Iterator[Consumer]:
    """A consumer of another client, in the group."""
    settings = {"bootstrap.servers": served.servers, "group.id": group, "client.id": "ann", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.subscribe([group])
    assert consumer.poll(PATIENCE_S) is not None
    yield consumer
    consumer.close()


def committed(http: httpx.Client, group: str) -> dict[int, int]:
    offsets = http.get(f"/v1/groups/{group}").json()["offsets"]
    return {one["partition"]: one["committed"] for one in offsets if one["committed"] is not None}


def reset(http: httpx.Client, group: str, **wanted: Any) -> httpx.Response:
    return http.post(f"/v1/groups/{group}/reset", json=wanted)


def test_a_group_shows_its_lag_by_partition(http: httpx.Client, group: str) -> None:
    shown = http.get(f"/v1/groups/{group}").json()
    assert shown["offsets"] == [{"topic": group, "partition": 0, "committed": 4, "end": 10, "lag": 6}]
    assert (shown["lag"], shown["state"], shown["members"]) == (6, "Empty", [])


@pytest.mark.usefixtures("member")
def test_members_are_shown_with_their_assignments(http: httpx.Client, group: str) -> None:
    shown = http.get(f"/v1/groups/{group}").json()
    [member] = shown["members"]
    assert (shown["state"], shown["protocol_type"], member["client_id"]) == ("Stable", "consumer", "ann")
    assert member["client_host"] == "127.0.0.1"
    assert member["assignment"] == [{"topic": group, "partitions": [0, 1]}]


@pytest.mark.usefixtures("member")
def test_the_lag_includes_assigned_partitions_without_a_committed_offset(http: httpx.Client, group: str) -> None:
    http.post(f"/v1/topics/{group}/messages", json={"messages": [{"value": "x", "partition": 1}] * 3})

    shown = http.get(f"/v1/groups/{group}").json()

    assert shown["offsets"][1] == {"topic": group, "partition": 1, "committed": None, "end": 3, "lag": 3}
    assert shown["lag"] == 9
    [summary] = [one for one in http.get("/v1/groups").json()["groups"] if one["id"] == group]
    assert summary["lag"] == 9
    assert [one["partition"] for one in http.get(f"/v1/groups/{group}/offsets").json()["offsets"]] == [0]


@pytest.mark.usefixtures("member")
def test_a_topic_shows_the_groups_that_read_it(http: httpx.Client, group: str) -> None:
    http.post("/v1/consumers/elsewhere/commit", json={"offsets": []})

    [shown] = http.get(f"/v1/topics/{group}/groups").json()["groups"]

    assert (shown["id"], shown["state"], shown["lag"]) == (group, "Stable", 6)
    assert shown["members"] == [{"client_id": "ann", "client_host": "127.0.0.1", "partitions": [0, 1]}]
    assert [(one["partition"], one["committed"], one["lag"]) for one in shown["offsets"]] == [(0, 4, 6), (1, None, 0)]


@pytest.mark.usefixtures("member")
def test_a_group_with_members_is_neither_reset_nor_deleted(http: httpx.Client, group: str) -> None:
    moved = reset(http, group, to="earliest")
    assert (moved.status_code, moved.json()["code"]) == (409, "UNKNOWN_MEMBER_ID")
    assert "stop them first" in moved.json()["hint"]
    deleted = http.delete(f"/v1/groups/{group}")
    assert (deleted.status_code, deleted.json()["code"]) == (409, "NON_EMPTY_GROUP")
    assert committed(http, group) == {0: 4}


@pytest.mark.parametrize(
    ("wanted", "after"),
    [
        ({"to": "earliest"}, 0),
        ({"to": "latest"}, 10),
        ({"to": "timestamp", "timestamp": 1650}, 7),
        ({"to": "timestamp", "timestamp": 9999}, 10),
        ({"to": "by", "by": -3}, 1),
        ({"to": "by", "by": -30}, 0),
        ({"to": "by", "by": 2}, 6),
        ({"to": "by", "by": 2**60}, 10),
    ],
)
def test_a_group_is_reset_and_a_dry_run_shows_the_offsets(
    http: httpx.Client, group: str, wanted: dict[str, Any], after: int
) -> None:
    expected = [{"topic": group, "partition": 0, "before": 4, "after": after}]
    tried = reset(http, group, **wanted, dry_run=True)
    assert tried.json() == {"group": group, "dry_run": True, "offsets": expected}
    assert committed(http, group) == {0: 4}
    assert reset(http, group, **wanted).json()["offsets"] == expected
    assert committed(http, group) == {0: after}


def test_a_new_group_is_reset_to_the_named_topics(http: httpx.Client, numbered: str) -> None:
    moved = reset(http, "new-group", to="latest", topics=[numbered])
    assert [(one["partition"], one["before"], one["after"]) for one in moved.json()["offsets"]] == [
        (0, None, 10),
        (1, None, 0),
    ]
    assert http.get("/v1/groups/new-group").json()["lag"] == 0


def test_offsets_are_exported_and_restored(http: httpx.Client, group: str) -> None:
    kept = http.get(f"/v1/groups/{group}/offsets").content
    reset(http, group, to="latest")
    assert http.post(f"/v1/groups/{group}/reset", content=kept).status_code == 200
    assert committed(http, group) == {0: 4}


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"to": "moon"}, 400),
        ({"to": "timestamp"}, 400),
        ({"to": "by"}, 400),
        ({"to": "offsets"}, 400),
        ({"to": "latest", "topics": ["no-such-topic"]}, 404),
        ({"to": "latest", "topics": []}, 400),
        ({"to": "offsets", "offsets": [{"topic": "no-such-topic", "partition": 0, "offset": 0}]}, 404),
        ({}, 400),
    ],
)
def test_an_invalid_reset_is_refused(http: httpx.Client, group: str, wanted: dict[str, Any], status: int) -> None:
    assert reset(http, group, **wanted).status_code == status
    assert committed(http, group) == {0: 4}


def test_a_reset_out_of_range_is_refused_and_changes_nothing(http: httpx.Client, group: str) -> None:
    offsets = [
        {"topic": group, "partition": 0, "offset": 2},
        {"topic": group, "partition": 1, "offset": 5},
    ]
    refused = reset(http, group, to="offsets", offsets=offsets)
    assert (refused.status_code, refused.json()["code"]) == (416, "OFFSET_OUT_OF_RANGE")
    assert committed(http, group) == {0: 4}


def test_a_group_without_members_is_deleted(http: httpx.Client, group: str) -> None:
    assert http.delete(f"/v1/groups/{group}").status_code == 200
    assert http.get(f"/v1/groups/{group}").status_code == 404
    assert http.get(f"/v1/groups/{group}/offsets").status_code == 404
    assert http.delete(f"/v1/groups/{group}").status_code == 404


def test_a_group_may_have_any_name(http: httpx.Client, numbered: str) -> None:
    offsets = {"offsets": [{"topic": numbered, "partition": 0, "offset": 1}]}
    for name, encoded in (("a/b", "a%2Fb"), ("größe x", "gr%C3%B6%C3%9Fe%20x"), ("100%", "100%25"), ("..", "%2e%2e")):
        assert http.post(f"/v1/consumers/{encoded}/commit", json=offsets).status_code == 200
        assert http.get(f"/v1/groups/{encoded}").json()["id"] == name
        assert http.delete(f"/v1/groups/{encoded}").status_code == 200


def test_a_share_group_is_shown_with_its_configs(http: httpx.Client, served: HttpBroker, numbered: str) -> None:
    configs = http.patch(
        f"/v1/groups/{numbered}/configs",
        json={"configs": {"share.auto.offset.reset": "earliest", "dead.letter.topic": "dead"}},
    )
    assert configs.status_code == 200
    with RawClient(served.servers) as client:
        [about] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=numbered),))).topics
        member = ShareMember(client, numbered, numbered, about.topic_id)
        member.fetch(max_records=3)
        assert member.acknowledge(1, 2, ACCEPT) == 0
        shown = http.get(f"/v1/groups/{numbered}").json()
    assert shown["protocol_type"] == "share"
    assert shown["offsets"][0] == {"topic": numbered, "partition": 0, "committed": 0, "end": 10, "lag": 8}
    assert shown["members"][0]["assignment"] == [{"topic": numbered, "partitions": [0, 1]}]
    [listed] = [one for one in http.get("/v1/groups").json()["groups"] if one["id"] == numbered]
    assert (listed["type"], listed["lag"], listed["members"]) == ("share", 8, 1)
    told = {one["name"]: one["value"] for one in http.get(f"/v1/groups/{numbered}/configs").json()["configs"]}
    assert (told["dead.letter.topic"], told["share.delivery.count.limit"]) == ("dead", "5")


def test_an_empty_share_group_is_reset_like_any_other(http: httpx.Client, served: HttpBroker, numbered: str) -> None:
    group = f"/v1/groups/{numbered}"
    http.patch(f"{group}/configs", json={"configs": {"share.auto.offset.reset": "earliest"}})
    with RawClient(served.servers) as client:
        [about] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=numbered),))).topics
        member = ShareMember(client, numbered, numbered, about.topic_id)
        member.fetch(max_records=3)
        assert member.acknowledge(0, 2, ACCEPT) == 0
        assert http.post(f"{group}/reset", json={"to": "earliest"}).json()["code"] == "NON_EMPTY_GROUP"
        member.heartbeat(epoch=-1)
    kept = http.get(f"{group}/offsets").json()
    assert kept["offsets"][0] == {"topic": numbered, "partition": 0, "offset": 3}
    previewed = http.post(f"{group}/reset", json={"to": "by", "by": 2, "dry_run": True}).json()
    assert previewed["offsets"][0] == {"topic": numbered, "partition": 0, "before": 3, "after": 5}
    assert http.get(f"{group}/offsets").json() == kept
    assert http.post(f"{group}/reset", json={"to": "earliest"}).status_code == 200
    assert http.get(group).json()["offsets"][0]["committed"] == 0
    assert http.post(f"{group}/reset", json=kept).status_code == 200
    assert http.get(f"{group}/offsets").json() == kept
