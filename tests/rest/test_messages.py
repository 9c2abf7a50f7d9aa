"""Reading messages over REST: positions, filters, limits, formats."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx


def post(http: httpx.Client, topic: str, *messages: dict[str, Any]) -> None:
    assert http.post(f"/v1/topics/{topic}/messages", json={"messages": messages}).status_code == 200


def read(http: httpx.Client, topic: str, **query: Any) -> dict[str, Any]:
    answer = http.get(f"/v1/topics/{topic}/messages", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def values(page: dict[str, Any]) -> list[Any]:
    return [one["value"] for one in page["messages"]]


@pytest.fixture
def numbered(http: httpx.Client, topic: str) -> str:
    """Ten messages in partition 0 with timestamps 1000, 1100, …, and three in partition 1."""
    first = [{"value": str(n), "partition": 0, "timestamp": 1000 + 100 * n} for n in range(10)]
    second = [{"value": f"b{n}", "partition": 1, "timestamp": 5000} for n in range(3)]
    post(http, topic, *first, *second)
    return topic


def test_all_partitions_are_read_one_after_the_other(http: httpx.Client, numbered: str) -> None:
    page = read(http, numbered)
    assert values(page) == [*map(str, range(10)), "b0", "b1", "b2"]
    assert (page["next"], page["is_end"]) == ("0:10,1:3", True)


def test_pages_follow_each_other_through_all_partitions(http: httpx.Client, numbered: str) -> None:
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 4}
    while True:
        page = read(http, numbered, **query)
        assert len(page["messages"]) <= 4
        seen += values(page)
        query["cursor"] = page["next"]
        if page["is_end"]:
            break
    assert seen == [*map(str, range(10)), "b0", "b1", "b2"]
    post(http, numbered, {"value": "later", "partition": 1})
    assert values(read(http, numbered, cursor=query["cursor"])) == ["later"]


def test_messages_are_read_from_an_offset(http: httpx.Client, numbered: str) -> None:
    assert values(read(http, numbered, partition=0, offset=7)) == ["7", "8", "9"]
    assert values(read(http, numbered, partition=0, offset=10)) == []


def test_messages_are_read_from_a_time(http: httpx.Client, numbered: str) -> None:
    assert values(read(http, numbered, partition=0, timestamp=1750)) == ["8", "9"]
    assert values(read(http, numbered, timestamp=1800)) == ["8", "9", "b0", "b1", "b2"]
    assert values(read(http, numbered, timestamp=9_000_000)) == []


def test_the_last_messages_are_those_of_each_partition(http: httpx.Client, numbered: str) -> None:
    assert values(read(http, numbered, partition=0, last=2)) == ["8", "9"]
    assert values(read(http, numbered, last=2, limit=10)) == ["8", "9", "b1", "b2"]
    assert values(read(http, numbered, partition=1, last=100)) == ["b0", "b1", "b2"]


def test_deleted_messages_are_skipped_by_a_cursor_and_refused_as_an_offset(http: httpx.Client, numbered: str) -> None:
    http.post(f"/v1/topics/{numbered}/delete-records", json={"partition": 0, "before_offset": 8})
    assert values(read(http, numbered, cursor="0:2")) == ["8", "9"]
    refused = http.get(f"/v1/topics/{numbered}/messages", params={"partition": 0, "offset": 2})
    assert (refused.status_code, refused.json()["code"]) == (416, "OFFSET_OUT_OF_RANGE")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"partition": 2}, 404),
        ({"partition": -1}, 400),
        ({"partition": "x"}, 400),
        ({"offset": 3}, 400),
        ({"partition": 0, "offset": 11}, 416),
        ({"partition": 0, "offset": 2**63}, 400),
        ({"offset": 1, "timestamp": 1, "partition": 0}, 400),
        ({"last": 0}, 400),
        ({"limit": 0}, 400),
        ({"limit": 10_001}, 400),
        ({"cursor": "nonsense"}, 400),
        ({"cursor": "9:1"}, 404),
        ({"path": "$$"}, 400),
        ({"equals": "x"}, 400),
        ({"values": "rot13"}, 400),
        ({"unknown": "1"}, 400),
        ({"limit": ["1", "2"]}, 400),
    ],
)
def test_an_impossible_read_is_a_clear_error(
    http: httpx.Client, numbered: str, query: dict[str, Any], status: int
) -> None:
    answer = http.get(f"/v1/topics/{numbered}/messages", params=query)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]


def test_messages_are_filtered(http: httpx.Client, topic: str) -> None:
    post(
        http,
        topic,
        {"key": "ann", "value": {"user": {"age": 41}}, "headers": {"trace": "1"}, "partition": 0},
        {"key": "bob", "value": {"user": {"age": 7}}, "headers": {"trace": "2"}, "partition": 0},
        {"key": "ann", "value": "no json", "partition": 0},
    )
    assert len(read(http, topic, key="ann")["messages"]) == 2
    assert values(read(http, topic, contains="json")) == ["no json"]
    assert values(read(http, topic, path="$.user.age", equals="41")) == [{"user": {"age": 41}}]
    assert len(read(http, topic, path="$.user")["messages"]) == 2
    assert len(read(http, topic, header="trace:2")["messages"]) == 1
    assert len(read(http, topic, header=["trace", "trace:1"])["messages"]) == 1
    found = read(http, topic, key="bob", limit=1)
    assert (found["scanned"], found["next"]) == (2, "0:2,1:0")


def test_keys_values_and_headers_are_shown_in_the_requested_encoding(http: httpx.Client, topic: str) -> None:
    headers = [{"name": "h", "value": "/w==", "encoding": "base64"}, {"name": "n"}]
    post(http, topic, {"key": "AA==", "key_encoding": "base64", "value": {"a": 1}, "headers": headers})
    [one] = read(http, topic)["messages"]
    assert (one["key"], one["key_encoding"]) == ("AA==", "base64")
    assert (one["value"], one["value_encoding"]) == ({"a": 1}, "json")
    assert one["headers"] == [
        {"name": "h", "value": "/w==", "encoding": "base64"},
        {"name": "n", "value": None, "encoding": "none"},
    ]
    [one] = read(http, topic, keys="hex", values="utf8")["messages"]
    assert (one["key"], one["key_encoding"]) == ("00", "hex")
    assert (one["value"], one["value_encoding"]) == ('{"a":1}', "utf8")


def test_all_messages_are_streamed_as_lines(http: httpx.Client, name: str) -> None:
    lines = b"".join(b'{"value":{"n":%d}}\n' % n for n in range(25_000))
    ndjson = {"content-type": "application/x-ndjson"}
    assert http.post(f"/v1/topics/{name}/messages", content=lines, headers=ndjson).json()["written"] == 25_000
    with http.stream("GET", f"/v1/topics/{name}/messages", headers={"accept": "application/x-ndjson"}) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        numbers = [json.loads(line)["value"]["n"] for line in answer.iter_lines()]
    assert numbers == list(range(25_000))
    with http.stream(
        "GET", f"/v1/topics/{name}/messages?limit=3&offset=5&partition=0", headers={"accept": "application/x-ndjson"}
    ) as answer:
        assert [json.loads(line)["offset"] for line in answer.iter_lines()] == [5, 6, 7]


def test_a_page_is_bounded_in_bytes_too(http: httpx.Client, topic: str) -> None:
    for _ in range(6):
        post(http, topic, {"value": "x" * 900_000, "partition": 0})
    page = read(http, topic)
    assert len(page["messages"]) == 5
    assert not page["is_end"]
    assert len(read(http, topic, cursor=page["next"])["messages"]) == 1


def test_an_unchanged_response_is_not_sent_again(http: httpx.Client, numbered: str) -> None:
    path = f"/v1/topics/{numbered}"
    first = http.get(path)
    again = http.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    post(http, numbered, {"value": "more"})
    changed = http.get(path, headers={"if-none-match": first.headers["etag"]})
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]


def test_large_responses_are_compressed_if_accepted(http: httpx.Client, numbered: str) -> None:
    path = f"/v1/topics/{numbered}/messages"
    assert http.get(path, headers={"accept-encoding": "gzip"}).headers["content-encoding"] == "gzip"
    plain = http.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert http.get(path, headers={"accept-encoding": "gzip"}).json() == plain.json()
