"""Consuming by name, with explicit commits."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

    from .serving import HttpBroker


@pytest.fixture
def numbered(http: httpx.Client, topic: str) -> str:
    """Messages 0 to 9, alternating between the partitions."""
    messages = [{"value": str(n), "partition": n % 2} for n in range(10)]
    http.post(f"/v1/topics/{topic}/messages", json={"messages": messages})
    return topic


def consume(http: httpx.Client, consumer: str, topic: str, **query: Any) -> dict[str, Any]:
    answer = http.get(f"/v1/consumers/{consumer}/messages", params={"topic": topic} | query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def values(consumed: dict[str, Any]) -> set[str]:
    return {one["value"] for one in consumed["messages"]}


def test_uncommitted_messages_are_read_again(http: httpx.Client, numbered: str) -> None:
    assert consume(http, numbered, numbered) == consume(http, numbered, numbered)


def test_reading_and_committing_in_turn_delivers_everything_once(http: httpx.Client, numbered: str) -> None:
    seen: list[str] = []
    while (consumed := consume(http, numbered, numbered, max=3))["messages"]:
        assert len(consumed["messages"]) <= 3
        seen += [one["value"] for one in consumed["messages"]]
        assert http.post(f"/v1/consumers/{numbered}/commit", json=consumed["commit"]).status_code == 200
    assert sorted(seen, key=int) == [str(n) for n in range(10)]
    assert http.get(f"/v1/groups/{numbered}").json()["lag"] == 0


def test_a_new_consumer_may_start_at_the_end(http: httpx.Client, numbered: str) -> None:
    consumed = consume(http, numbered, numbered, start="latest")
    assert consumed["messages"] == []
    http.post(f"/v1/consumers/{numbered}/commit", json=consumed["commit"])
    http.post(f"/v1/topics/{numbered}/messages", json={"messages": [{"value": "new"}]})
    assert values(consume(http, numbered, numbered)) == {"new"}


def test_a_consumer_waits_for_the_first_message(served: HttpBroker, http: httpx.Client, topic: str) -> None:
    def is_parked() -> bool:
        return any(partition.waits for partition in served.broker.topics.by_name[topic].partitions)

    answers: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: answers.append(consume(http, topic, topic, wait_ms=20_000)))
    waiting.start()
    deadline = time.monotonic() + 10
    while not is_parked():
        assert time.monotonic() < deadline
    http.post(f"/v1/topics/{topic}/messages", json={"messages": [{"value": "at last"}]})
    waiting.join(10)
    assert [values(one) for one in answers] == [{"at last"}]


def test_a_consumer_continues_after_deleted_messages(http: httpx.Client, numbered: str) -> None:
    for partition in (0, 1):
        http.post(f"/v1/topics/{numbered}/delete-records", json={"partition": partition, "before_offset": 4})
    assert values(consume(http, numbered, numbered)) == {"8", "9"}


@pytest.mark.parametrize(
    ("offsets", "status"),
    [
        ([{"topic": "no-such-topic", "partition": 0, "offset": 0}], 404),
        ([{"topic": "TOPIC", "partition": 7, "offset": 0}], 404),
        ([{"topic": "TOPIC", "partition": 0, "offset": 6}], 416),
        ([{"topic": "TOPIC", "partition": 0, "offset": -1}], 400),
        ([{"topic": "TOPIC", "partition": 0}], 400),
        ([], 400),
        (None, 400),
    ],
)
def test_an_invalid_commit_commits_nothing(
    http: httpx.Client, numbered: str, offsets: list[dict[str, Any]] | None, status: int
) -> None:
    good = [{"topic": numbered, "partition": 1, "offset": 1}]
    for one in offsets or ():
        if one["topic"] == "TOPIC":
            one["topic"] = numbered
    body = {"offsets": good + offsets} if offsets else {"offsets": offsets}
    assert http.post(f"/v1/consumers/{numbered}/commit", json=body).status_code == status
    assert http.get(f"/v1/groups/{numbered}").status_code == 404


@pytest.mark.parametrize(
    "query", [{}, {"topic": "t", "max": 0}, {"topic": "t", "wait_ms": 10**6}, {"topic": "t", "x": 1}]
)
def test_an_invalid_read_is_refused(http: httpx.Client, query: dict[str, Any]) -> None:
    assert http.get("/v1/consumers/c/messages", params=query).status_code == 400
