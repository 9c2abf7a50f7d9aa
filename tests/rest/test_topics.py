"""Topics over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx


def test_a_topic_is_created_with_its_partitions_and_configs(http: httpx.Client, name: str) -> None:
    wanted = {"name": name, "partitions": 3, "configs": {"retention.ms": "1000"}}
    created = http.post("/v1/topics", json=wanted)
    assert created.status_code == 201
    assert created.json()["partitions"] == 3
    shown = http.get(f"/v1/topics/{name}").json()
    assert shown["topic_id"] == created.json()["topic_id"]
    assert len(shown["partitions"]) == 3
    assert shown["configs"] == {"retention.ms": "1000"}


def test_a_dry_run_creates_nothing(http: httpx.Client, name: str) -> None:
    tried = http.post("/v1/topics", json={"name": name, "dry_run": True})
    assert (tried.status_code, tried.json()["topic_id"]) == (201, None)
    assert http.get(f"/v1/topics/{name}").status_code == 404


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"partitions": 0}, 400, "INVALID_PARTITIONS"),
        ({"partitions": 1_000_000_000}, 400, "POLICY_VIOLATION"),
        ({"replication_factor": 3}, 400, "INVALID_REPLICATION_FACTOR"),
        ({"configs": {"no.such": "1"}}, 400, "INVALID_CONFIG"),
        ({"configs": {"retention.ms": "soon"}}, 400, "INVALID_CONFIG"),
        ({"name": ".."}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "a/b"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "a\u0000"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "x" * 250}, 400, "INVALID_TOPIC_EXCEPTION"),
        ({"name": "__cluster_metadata"}, 400, "INVALID_REQUEST"),
    ],
)
def test_an_invalid_topic_is_refused(
    http: httpx.Client, name: str, change: dict[str, object], status: int, code: str
) -> None:
    before = http.get("/v1/topics").json()
    refused = http.post("/v1/topics", json={"name": name} | change)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert refused.headers["content-type"] == "application/problem+json"
    assert http.get("/v1/topics").json() == before


def test_a_name_that_is_taken_is_a_conflict(http: httpx.Client, topic: str) -> None:
    refused = http.post("/v1/topics", json={"name": topic})
    assert (refused.status_code, refused.json()["code"]) == (409, "TOPIC_ALREADY_EXISTS")


def test_topics_are_listed_by_prefix_and_internal_ones_on_request(http: httpx.Client, topic: str) -> None:
    offsets = [{"topic": topic, "partition": 0, "offset": 0}]
    http.post(f"/v1/consumers/{topic}/commit", json={"offsets": offsets})
    names = [one["name"] for one in http.get("/v1/topics", params={"prefix": topic}).json()["topics"]]
    assert names == [topic]
    internal = http.get("/v1/topics", params={"internal": "true", "prefix": "__"}).json()["topics"]
    assert [one["name"] for one in internal] == ["__consumer_offsets"]
    assert http.get("/v1/topics", params={"prefix": "__"}).json()["topics"] == []


def test_partitions_are_added_and_never_removed(http: httpx.Client, topic: str) -> None:
    grown = http.post(f"/v1/topics/{topic}/partitions", json={"count": 5})
    assert (grown.status_code, len(grown.json()["partitions"])) == (200, 5)
    refused = http.post(f"/v1/topics/{topic}/partitions", json={"count": 2})
    assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_PARTITIONS")


def test_configs_are_changed_and_reset(http: httpx.Client, topic: str) -> None:
    def retention() -> dict[str, object]:
        configs = http.get(f"/v1/topics/{topic}/configs").json()["configs"]
        [found] = [one for one in configs if one["name"] == "retention.ms"]
        return {"value": found["value"], "is_default": found["is_default"]}

    default = retention()
    assert default["is_default"]
    changed = http.patch(f"/v1/topics/{topic}/configs", json={"configs": {"retention.ms": "5000"}})
    assert changed.status_code == 200
    assert retention() == {"value": "5000", "is_default": False}
    http.patch(f"/v1/topics/{topic}/configs", json={"configs": {"retention.ms": "7"}, "dry_run": True})
    assert retention()["value"] == "5000"
    http.patch(f"/v1/topics/{topic}/configs", json={"configs": {"retention.ms": None}})
    assert retention() == default


def test_configs_can_be_numbers_and_booleans_of_json(http: httpx.Client, topic: str, name: str) -> None:
    changes = {"retention.ms": 86400000, "min.cleanable.dirty.ratio": 0.25, "preallocate": False}
    configs = http.patch(f"/v1/topics/{topic}/configs", json={"configs": changes}).json()["configs"]
    values = {one["name"]: one["value"] for one in configs}
    assert [values[config] for config in changes] == ["86400000", "0.25", "false"]
    created = {"name": f"{name}-new", "configs": {"retention.ms": 5}}
    assert http.post("/v1/topics", json=created).status_code == 201
    assert http.get(f"/v1/topics/{name}-new").json()["configs"] == {"retention.ms": "5"}


def test_the_error_for_deleting_too_many_records_names_the_range(http: httpx.Client, topic: str) -> None:
    refused = http.post(f"/v1/topics/{topic}/delete-records", json={"partition": 1, "before_offset": 9})
    assert (refused.status_code, refused.json()["detail"]) == (416, f"{topic}-1 has offsets 0 to 0, not 9")


def test_internal_topics_are_neither_listed_nor_counted(http: httpx.Client, name: str) -> None:
    before = http.get("/v1/broker").json()["topics"]
    http.post("/v1/topics", json={"name": "__ottla_pipelines"})
    http.post(f"/v1/groups/{name}/reset", json={"to": "earliest", "topics": [name]})
    http.post("/v1/topics", json={"name": name})
    assert http.get("/v1/broker").json()["topics"] == before + 1
    assert http.get("/v1/topics", params={"prefix": "__ottla"}).json()["topics"] == []
    [own] = http.get("/v1/topics", params={"prefix": "__ottla", "internal": "true"}).json()["topics"]
    assert own["is_internal"]


@pytest.mark.parametrize("body", [{"configs": {}}, {"configs": {"retention.ms": [5]}}, {"configs": {"nope": "1"}}, {}])
def test_invalid_config_changes_are_refused(http: httpx.Client, topic: str, body: dict[str, object]) -> None:
    assert http.patch(f"/v1/topics/{topic}/configs", json=body).status_code == 400


def test_the_oldest_messages_are_deleted_on_request(http: httpx.Client, topic: str) -> None:
    messages = [{"value": str(number), "partition": 1} for number in range(5)]
    http.post(f"/v1/topics/{topic}/messages", json={"messages": messages})
    deleted = http.post(f"/v1/topics/{topic}/delete-records", json={"partition": 1, "before_offset": 3})
    assert deleted.json() == {"partition": 1, "start_offset": 3}
    left = http.get(f"/v1/topics/{topic}/messages", params={"partition": 1}).json()["messages"]
    assert [one["value"] for one in left] == ["3", "4"]
    too_far = http.post(f"/v1/topics/{topic}/delete-records", json={"partition": 1, "before_offset": 9})
    assert too_far.status_code == 416
    assert http.post(f"/v1/topics/{topic}/delete-records", json={"partition": 1}).json()["start_offset"] == 5


def test_an_unknown_topic_is_not_found_on_every_path(http: httpx.Client, name: str) -> None:
    asked = [
        http.get(f"/v1/topics/{name}"),
        http.delete(f"/v1/topics/{name}"),
        http.get(f"/v1/topics/{name}/messages"),
        http.get(f"/v1/topics/{name}/tail"),
        http.get(f"/v1/topics/{name}/configs"),
        http.post(f"/v1/topics/{name}/partitions", json={"count": 2}),
        http.get("/v1/consumers/c/messages", params={"topic": name}),
    ]
    assert [one.status_code for one in asked] == [404] * len(asked)
    assert {one.json()["code"] for one in asked} == {"UNKNOWN_TOPIC_OR_PARTITION"}
    assert all(one.json()["hint"] for one in asked)
