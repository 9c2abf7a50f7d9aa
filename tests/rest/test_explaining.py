"""Errors in requests are answered with the valid alternatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

ENCODINGS = "`base64`, `hex`, `json`, `none`, `utf8`"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("", "the body is empty"),
        ('{"mesages": []}', "the body: unknown field `mesages`; did you mean `messages`?"),
        ('{"messages": [{"val": 1}]}', "the body: unknown field `val`, at $.messages[0]; did you mean `value`?"),
        (
            '{"messages": [{"key_encoding": "xml"}]}',
            f"the body: invalid value `xml`, at $.messages[0].key_encoding; known: {ENCODINGS}",
        ),
        (
            '{"messages": [{"value": 1, "timestamp": "now"}]}',
            "the body: Expected `int`, got `str`, at $.messages[0].timestamp",
        ),
        ("[]", "the body: Expected `object`, got `array`"),
    ],
)
def test_the_error_for_an_invalid_body_lists_valid_fields(
    http: httpx.Client, topic: str, body: str, detail: str
) -> None:
    refused = http.post(f"/v1/topics/{topic}/messages", content=body)
    assert (refused.status_code, refused.json()["detail"]) == (400, detail)


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ({"limt": "3"}, "query: unknown field `limt`; did you mean `limit`?"),
        (
            {"values": "xml"},
            "query: invalid value `xml`, at $.values; known: `auto`, `base64`, `hex`, `json`, `schema`, `utf8`",
        ),
        ({"limit": "many"}, "query: Expected `int`, got `str`, at $.limit"),
    ],
)
def test_the_error_for_an_invalid_query_lists_valid_parameters(
    http: httpx.Client, topic: str, query: dict[str, Any], detail: str
) -> None:
    refused = http.get(f"/v1/topics/{topic}/messages", params=query)
    assert (refused.status_code, refused.json()["detail"]) == (400, detail)


def test_the_error_for_an_invalid_line_of_a_stream_names_the_line(http: httpx.Client, topic: str) -> None:
    lines = '{"value": "a"}\n{"value": }\n'
    refused = http.post(f"/v1/topics/{topic}/messages", content=lines, headers={"content-type": "application/x-ndjson"})
    assert refused.json()["detail"].startswith("line 2 is not JSON")
    assert refused.json()["written"] == 1


def test_a_compressed_body_is_refused_by_name(http: httpx.Client, topic: str) -> None:
    refused = http.post(f"/v1/topics/{topic}/messages", content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert (refused.status_code, refused.json()["detail"]) == (415, "content encoding gzip is not supported")


def test_the_error_for_an_unknown_partition_names_the_existing_ones(http: httpx.Client, topic: str, name: str) -> None:
    refused = http.get(f"/v1/topics/{topic}/messages", params={"partition": 9})
    assert refused.json()["detail"] == f"no partition 9 in topic {topic} (it has 2 partitions)"
    http.post("/v1/topics", json={"name": f"{name}-one"})
    refused = http.post(f"/v1/topics/{name}-one/messages", json={"messages": [{"value": 1, "partition": 7}]})
    assert refused.json()["detail"] == f"message 1: no partition 7 in topic {name}-one (it has 1 partition)"


def test_an_unknown_transaction_state_is_refused(http: httpx.Client) -> None:
    refused = http.get("/v1/transactions", params={"state": "Odd"})
    assert (refused.status_code, refused.json()["detail"]) == (400, "query: unknown state Odd")


def test_a_very_long_error_is_truncated(http: httpx.Client) -> None:
    answer = http.post("/v1/topics", content=b'{"' + b"name " * 200_000 + b'": 1}')

    assert answer.status_code == 400
    assert answer.json()["detail"].endswith("name name name…")
    assert len(answer.content) < 1000
