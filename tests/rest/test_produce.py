"""Writing messages over REST: all or nothing as JSON, line by line as a stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

NDJSON = {"content-type": "application/x-ndjson"}


def post(http: httpx.Client, topic: str, *messages: dict[str, Any]) -> httpx.Response:
    return http.post(f"/v1/topics/{topic}/messages", json={"messages": messages})


def count(http: httpx.Client, topic: str) -> int:
    messages: int = http.get(f"/v1/topics/{topic}").json()["messages"]
    return messages


def test_each_message_gets_its_partition_and_offset(http: httpx.Client, topic: str) -> None:
    written = post(
        http, topic, {"value": "a", "partition": 1}, {"value": "b", "partition": 0}, {"value": "c", "partition": 1}
    )
    assert written.json()["offsets"] == [
        {"partition": 1, "offset": 0},
        {"partition": 0, "offset": 0},
        {"partition": 1, "offset": 1},
    ]
    assert written.json()["partitions"] == [
        {"partition": 0, "first_offset": 0, "last_offset": 0, "count": 1},
        {"partition": 1, "first_offset": 0, "last_offset": 1, "count": 2},
    ]


def test_the_same_key_goes_to_the_same_partition(http: httpx.Client, topic: str) -> None:
    [first] = post(http, topic, {"key": "ann", "value": "1"}).json()["offsets"]
    [second] = post(http, topic, {"key": "ann", "value": "2"}).json()["offsets"]
    assert first["partition"] == second["partition"]


def test_a_timestamp_is_kept(http: httpx.Client, topic: str) -> None:
    post(http, topic, {"value": "x", "timestamp": 1234, "partition": 0})
    [one] = http.get(f"/v1/topics/{topic}/messages").json()["messages"]
    assert (one["timestamp"], one["timestamp_type"]) == (1234, "CreateTime")


def test_more_than_a_batch_holds_is_written_as_several(http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name, "configs": {"max.message.bytes": "1000"}})
    written = post(http, name, *({"value": "x" * 300} for _ in range(10)))
    assert written.json()["written"] == 10
    assert [one["offset"] for one in written.json()["offsets"]] == list(range(10))


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ({"value": "x", "partition": 2}, 404),
        ({"value": "x", "partition": -1}, 400),
        ({"value": "x", "partition": "0"}, 400),
        ({"value": "x", "timestamp": -5}, 400),
        ({"value": "x", "timestamp": 2**62}, 400),
        ({"value": "?", "value_encoding": "base64"}, 400),
        ({"value": {"a": 1}, "value_encoding": "hex"}, 400),
        ({"value": "x", "key_encoding": "rot13"}, 400),
        ({"value": "x", "headers": "nope"}, 400),
        ({"value": "x", "headers": [{"value": "1"}]}, 400),
        ({"value": "x", "headers": {"a": 1}}, 400),
        ({"valeu": "x"}, 400),
        ({"value": "x" * 1_100_000}, 413),
    ],
)
def test_one_bad_message_writes_none(http: httpx.Client, topic: str, message: dict[str, Any], status: int) -> None:
    refused = post(http, topic, {"value": "good", "partition": 0}, message)
    assert refused.status_code == status, refused.text
    assert refused.headers["content-type"] == "application/problem+json"
    assert count(http, topic) == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b'{"messages": []}',
        b'{"messages": {}}',
        b'{"messages": [1]}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_a_body_that_is_not_a_list_of_messages_is_refused(http: httpx.Client, topic: str, body: bytes) -> None:
    refused = http.post(f"/v1/topics/{topic}/messages", content=body, headers={"content-type": "application/json"})
    assert refused.status_code == 400, refused.text
    assert count(http, topic) == 0


def test_internal_topics_are_not_written_to(http: httpx.Client, topic: str) -> None:
    http.post(f"/v1/consumers/{topic}/commit", json={"offsets": [{"topic": topic, "partition": 0, "offset": 0}]})
    refused = post(http, "__consumer_offsets", {"value": "x"})
    assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_TOPIC_EXCEPTION")


def test_invalid_topic_names_create_no_topic(http: httpx.Client) -> None:
    before = http.get("/v1/topics").json()
    for name in ("..%2f..%2fetc", "a%00b", "%2e%2e", "x" * 250, "sch%C3%B6n", "%ff"):
        refused = http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "x"}]})
        assert refused.status_code == 400, (name, refused.text)
    assert http.get("/v1/topics").json() == before


def test_a_stream_is_written_without_buffering(http: httpx.Client, name: str) -> None:
    def lines() -> Iterator[bytes]:
        for number in range(30_000):
            yield b'{"key":"k%d","value":{"n":%d,"pad":"%s"}}\n' % (number % 10, number, b"x" * 100)

    written = http.post(f"/v1/topics/{name}/messages", content=lines(), headers=NDJSON)
    assert written.status_code == 200, written.text
    assert written.json() == {
        "topic": name,
        "written": 30_000,
        "offsets": [],
        "partitions": [{"partition": 0, "first_offset": 0, "last_offset": 29_999, "count": 30_000}],
    }
    [last] = http.get(f"/v1/topics/{name}/messages", params={"last": 1}).json()["messages"]
    assert last["value"]["n"] == 29_999


def test_a_stream_may_have_empty_lines_and_no_last_line_end(http: httpx.Client, name: str) -> None:
    body = b'{"value":"a"}\r\n\n  \n{"value":"b"}'
    assert http.post(f"/v1/topics/{name}/messages", content=body, headers=NDJSON).json()["written"] == 2
    assert http.post(f"/v1/topics/{name}/messages", content=b"\n\n", headers=NDJSON).status_code == 400


def test_a_bad_line_ends_a_stream_with_its_number_and_the_written_count(http: httpx.Client, name: str) -> None:
    lines = [json.dumps({"value": str(number)}) for number in range(5)]
    lines[3] = '{"value": '
    refused = http.post(f"/v1/topics/{name}/messages", content="\n".join(lines), headers=NDJSON)
    assert refused.status_code == 400
    assert "line 4" in refused.json()["detail"]
    assert refused.json()["written"] == 3
    assert count(http, name) == 3


def test_a_first_bad_line_creates_no_topic(http: httpx.Client, name: str) -> None:
    assert http.post(f"/v1/topics/{name}/messages", content=b"nonsense\n", headers=NDJSON).status_code == 400
    assert http.get(f"/v1/topics/{name}").status_code == 404
