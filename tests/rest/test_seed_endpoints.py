"""The eight endpoints that users of StrikeMQ know, with its paths and its produce body."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

    from .serving import HttpBroker


def test_the_broker_returns_its_identity(served: HttpBroker, http: httpx.Client) -> None:
    answer = http.get("/v1/broker")
    assert answer.status_code == 200
    assert answer.json()["broker_id"] == 0
    assert answer.json()["kafka"] == served.servers


def test_a_message_posted_with_key_and_value_is_read_back(http: httpx.Client, name: str) -> None:
    body = {"messages": [{"key": "user-1", "value": "hello"}, {"key": "user-2", "value": "world"}]}
    posted = http.post(f"/v1/topics/{name}/messages", json=body)
    assert posted.status_code == 200
    assert posted.json()["written"] == 2
    assert posted.json()["offsets"] == [{"partition": 0, "offset": 0}, {"partition": 0, "offset": 1}]

    peeked = http.get(f"/v1/topics/{name}/messages", params={"partition": 0, "offset": 0, "limit": 10})
    assert peeked.status_code == 200
    found = [(one["offset"], one["key"], one["value"]) for one in peeked.json()["messages"]]
    assert found == [(0, "user-1", "hello"), (1, "user-2", "world")]
    assert all(one["timestamp"] > 0 for one in peeked.json()["messages"])


def test_topics_are_listed_shown_and_deleted(http: httpx.Client, name: str) -> None:
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "x"}]})
    [listed] = [one for one in http.get("/v1/topics").json()["topics"] if one["name"] == name]
    assert (listed["partitions"], listed["messages"]) == (1, 1)
    shown = http.get(f"/v1/topics/{name}").json()
    assert shown["name"] == name
    assert [(one["start_offset"], one["end_offset"]) for one in shown["partitions"]] == [(0, 1)]
    assert http.delete(f"/v1/topics/{name}").status_code == 200
    assert http.get(f"/v1/topics/{name}").status_code == 404
    assert name not in [one["name"] for one in http.get("/v1/topics").json()["topics"]]


def test_groups_are_listed_and_shown(http: httpx.Client, name: str) -> None:
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "x"}]})
    offsets = [{"topic": name, "partition": 0, "offset": 0}]
    assert http.post(f"/v1/consumers/{name}/commit", json={"offsets": offsets}).status_code == 200
    [listed] = [one for one in http.get("/v1/groups").json()["groups"] if one["id"] == name]
    assert (listed["state"], listed["members"], listed["lag"]) == ("Empty", 0, 1)
    shown = http.get(f"/v1/groups/{name}").json()
    assert shown["offsets"] == [{"topic": name, "partition": 0, "committed": 0, "end": 1, "lag": 1}]
