"""The live tail: wakes on appends, reports skipped messages, ends with its topic."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from .serving import PATIENCE_S, HttpBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def events_in(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Events with a name, each with its data and its id."""
    event: dict[str, Any] = {}
    for line in lines:
        if not line:
            if "event" in event:
                yield event
            event = {}
        elif not line.startswith(":"):
            field, _, value = line.partition(": ")
            event[field] = json.loads(value) if field == "data" else value


@contextmanager
def tailing(served: HttpBroker, topic: str, headers: dict[str, str] | None = None, **query: Any) -> Iterator[Any]:
    path = f"{served.url}/v1/topics/{topic}/tail"
    # Without certificates, which would take longer to load than all the rest.
    with httpx.stream("GET", path, params=query, headers=headers, timeout=PATIENCE_S, verify=False) as answer:  # noqa: S501
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        # The first event: from here on nothing is missed.
        assert next(lines) == "retry: 1000"
        yield events_in(lines)


def post(http: httpx.Client, topic: str, *values: str, partition: int = 0) -> None:
    messages = [{"value": value, "partition": partition} for value in values]
    assert http.post(f"/v1/topics/{topic}/messages", json={"messages": messages}).status_code == 200


def test_messages_arrive_as_they_are_written(served: HttpBroker, http: httpx.Client, topic: str) -> None:
    post(http, topic, "before")
    with tailing(served, topic) as events:
        post(http, topic, "one", "two")
        found = [next(events), next(events)]
        assert [(one["event"], one["data"]["value"]) for one in found] == [("message", "one"), ("message", "two")]
        post(http, topic, "other", partition=1)
        assert next(events)["data"]["partition"] == 1


def test_a_tail_may_start_at_the_beginning_and_be_filtered(served: HttpBroker, http: httpx.Client, topic: str) -> None:
    post(http, topic, "apple", "pear", "apple pie")
    with tailing(served, topic, start="earliest", contains="apple", partition=0) as events:
        assert [next(events)["data"]["value"], next(events)["data"]["value"]] == ["apple", "apple pie"]


def test_a_reconnected_tail_continues_where_it_stopped(served: HttpBroker, http: httpx.Client, topic: str) -> None:
    post(http, topic, "one", "two")
    with tailing(served, topic, start="earliest") as events:
        last = [next(events), next(events)][-1]
    post(http, topic, "three")
    with tailing(served, topic, {"last-event-id": last["id"]}) as events:
        assert next(events)["data"]["value"] == "three"


def test_a_tail_ends_with_its_topic_and_says_so(served: HttpBroker, http: httpx.Client, topic: str) -> None:
    with tailing(served, topic) as events:
        http.delete(f"/v1/topics/{topic}")
        end = next(events)
        assert (end["event"], end["data"]["code"]) == ("end", "UNKNOWN_TOPIC_OR_PARTITION")
        assert next(events, None) is None


def test_messages_deleted_by_retention_are_reported_as_skipped(
    served: HttpBroker, http: httpx.Client, topic: str
) -> None:
    post(http, topic, "one", "two", "three")
    http.post(f"/v1/topics/{topic}/delete-records", json={"partition": 0, "before_offset": 2})
    with tailing(served, topic, {"last-event-id": "0:0"}) as events:
        skipped = next(events)
        assert skipped["event"] == "skipped"
        assert skipped["data"] == {"partition": 0, "from_offset": 0, "to_offset": 2, "count": 2}
        assert next(events)["data"]["value"] == "three"


def test_a_slow_reader_gets_a_skip_report_and_does_not_block_others(
    served: HttpBroker, http: httpx.Client, topic: str
) -> None:
    with socket.create_connection(served.http.address, PATIENCE_S) as slow:
        slow.sendall(f"GET /v1/topics/{topic}/tail?max_behind=10 HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        received = slow.recv(1000)
        assert b"200 OK" in received
        # More than the sockets' buffers take, while no client reads.
        for _ in range(40):
            post(http, topic, *["x" * 10_000] * 100)
        post(http, topic, "the last one")
        lines = (line.decode().rstrip() for line in slow.makefile("rb"))
        skipped = []
        for event in events_in(lines):
            if event["event"] == "skipped":
                skipped.append(event["data"])
            if event["data"].get("to_offset") == 4001 or event["data"].get("value") == "the last one":
                break
        assert skipped
        assert all(one["count"] == one["to_offset"] - one["from_offset"] > 10 for one in skipped)
        post(http, topic, "after")
        assert any(event["data"].get("value") == "after" for event in events_in(lines))
    assert "ottla_tail_skipped_messages_total" in http.get("/metrics").text


def test_a_hundred_tails_at_once_all_get_the_message(served: HttpBroker, http: httpx.Client, topic: str) -> None:
    with ExitStack() as open_tails:
        tails = [open_tails.enter_context(tailing(served, topic)) for _ in range(100)]
        post(http, topic, "to all")
        assert {next(events)["data"]["value"] for events in tails} == {"to all"}


def test_a_disconnected_tail_stops_waiting(served: HttpBroker, http: httpx.Client, topic: str) -> None:
    with tailing(served, topic):
        pass
    partition = served.broker.topics.by_name[topic].partitions[0]
    for _ in range(1000):
        post(http, topic, "x")
        if not partition.waits:
            break
    assert not partition.waits


def test_a_stop_of_the_broker_ends_tails_at_once(tmp_path: Path) -> None:
    with HttpBroker(tmp_path) as served:
        served.client.post("/v1/topics", json={"name": "t"})
        with socket.create_connection(served.http.address, PATIENCE_S) as tail:
            tail.sendall(b"GET /v1/topics/t/tail HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b"200 OK" in tail.recv(1000)
            served.run(served.http.stop())
            while tail.recv(1000):
                pass


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ({"partition": 5}, {}, 404),
        ({"start": "noon"}, {}, 400),
        ({"max_behind": 0}, {}, 400),
        ({}, {"last-event-id": "nonsense"}, 400),
        ({}, {"last-event-id": "7:1"}, 404),
        ({"path": "$$"}, {}, 400),
    ],
)
def test_an_invalid_tail_is_refused(
    http: httpx.Client, topic: str, query: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    assert http.get(f"/v1/topics/{topic}/tail", params=query, headers=headers).status_code == status


def test_a_tail_has_a_head(http: httpx.Client, topic: str) -> None:
    head = http.head(f"/v1/topics/{topic}/tail")
    assert (head.status_code, head.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
