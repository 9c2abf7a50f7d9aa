"""Paths of Confluent's REST Proxy."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

if TYPE_CHECKING:
    import httpx


@pytest.fixture
def cluster_id(http: httpx.Client) -> str:
    [cluster] = http.get("/v3/clusters").json()["data"]
    found: str = cluster["cluster_id"]
    return found


def written(http: httpx.Client, topic: str) -> list[tuple[Any, Any]]:
    messages = http.get(f"/v1/topics/{topic}/messages").json()["messages"]
    return [(one["key"], one["value"]) for one in messages]


def test_v3_writes_a_record_with_key_headers_partition_and_time(
    http: httpx.Client, cluster_id: str, topic: str
) -> None:
    record = {
        "partition_id": 1,
        "headers": [{"name": "trace", "value": base64.b64encode(b"17").decode()}],
        "key": {"type": "STRING", "data": "customer-1"},
        "value": {"type": "JSON", "data": {"cake": 1}},
        "timestamp": "2023-11-14T22:13:20Z",
    }

    answer = http.post(f"/v3/clusters/{cluster_id}/topics/{topic}/records", json=record)

    assert answer.status_code == 200
    assert answer.json() == {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": topic,
        "partition_id": 1,
        "offset": 0,
        "timestamp": "2023-11-14T22:13:20Z",
        "key": {"type": "STRING", "size": 10},
        "value": {"type": "JSON", "size": 10},
    }
    [message] = http.get(f"/v1/topics/{topic}/messages").json()["messages"]
    assert (message["key"], message["value"], message["timestamp"]) == ("customer-1", {"cake": 1}, 1_700_000_000_000)
    assert message["headers"] == [{"name": "trace", "value": "17", "encoding": "utf8"}]


def test_v3_writes_several_records_of_one_body(http: httpx.Client, cluster_id: str, topic: str) -> None:
    records = [{"partition_id": 0, "value": {"type": "BINARY", "data": "AP8="}}, {"partition_id": 0, "value": None}]
    body = b"".join(map(msgspec.json.encode, records))

    answer = http.post(f"/v3/clusters/{cluster_id}/topics/{topic}/records", content=body)

    assert [msgspec.json.decode(line)["offset"] for line in answer.content.splitlines()] == [0, 1]
    assert written(http, topic) == [(None, "AP8="), (None, None)]


@pytest.mark.parametrize(
    ("record", "status"),
    [
        ({"value": {"type": "AVRO", "data": "x"}}, 400),
        ({"value": {"type": "BINARY", "data": "not base64"}}, 400),
        ({"timestamp": "yesterday"}, 400),
        ({"partition_id": 99}, 404),
    ],
)
def test_v3_errors_have_a_code_and_a_message(
    http: httpx.Client, cluster_id: str, topic: str, record: dict[str, Any], status: int
) -> None:
    answer = http.post(f"/v3/clusters/{cluster_id}/topics/{topic}/records", json=record)

    assert (answer.status_code, answer.json()["error_code"]) == (status, status)
    assert answer.json()["message"]
    assert written(http, topic) == []


def test_v3_refuses_another_cluster(http: httpx.Client, topic: str) -> None:
    answer = http.post(f"/v3/clusters/other/topics/{topic}/records", json={"value": None})
    assert (answer.status_code, answer.json()["error_code"]) == (404, 404)


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [("json", {"cake": 1}, {"cake": 1}), ("binary", base64.b64encode(b"cake").decode(), "cake")],
)
def test_v2_writes_json_and_binary_records(http: httpx.Client, topic: str, kind: str, given: Any, kept: Any) -> None:
    body = msgspec.json.encode({"records": [{"value": given, "partition": 0}, {"value": given, "partition": 1}]})
    headers = {"content-type": f"application/vnd.kafka.{kind}.v2+json"}

    answer = http.post(f"/topics/{topic}", content=body, headers=headers)

    offsets = [{"partition": number, "offset": 0, "error_code": None, "error": None} for number in (0, 1)]
    assert answer.json() == {"offsets": offsets, "key_schema_id": None, "value_schema_id": None}
    assert [value for _, value in written(http, topic)] == [kept, kept]


def test_topics_are_listed_in_both_versions(http: httpx.Client, cluster_id: str, topic: str) -> None:
    assert topic in http.get("/topics").json()
    assert http.get(f"/topics/{topic}").json()["partitions"][1]["partition"] == 1
    listed = http.get(f"/v3/clusters/{cluster_id}/topics").json()["data"]
    assert [one["partitions_count"] for one in listed if one["topic_name"] == topic] == [2]
