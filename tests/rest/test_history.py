"""The counters of the last hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.http.monitoring.history import UNKNOWN, History, OpenLogs, Sample, Sampler, written_since

if TYPE_CHECKING:
    import httpx

    from .serving import HttpBroker


def sample(number: int) -> Sample:
    return Sample(number, number * 10, 0, 0, 1, UNKNOWN)


def test_the_history_keeps_the_newest_samples_in_order() -> None:
    history = History(3)
    assert history.columns()["time_ms"] == []
    for number in range(5):
        history.add(sample(number))
        assert history.columns()["time_ms"] == list(range(max(0, number - 2), number + 1))
    assert history.columns()["messages"] == [20, 30, 40]


def test_a_log_that_was_opened_or_closed_meanwhile_does_not_look_like_new_messages() -> None:
    before = {"a": OpenLogs(2, 100), "opened": OpenLogs(1, 10), "deleted": OpenLogs(1, 5)}
    now = {"a": OpenLogs(2, 130), "opened": OpenLogs(2, 5_000), "new": OpenLogs(1, 7)}

    assert written_since(before, now) == 30


def test_written_messages_are_in_the_history(http: httpx.Client, served: HttpBroker, topic: str) -> None:
    sampler = Sampler(served.broker)
    both = [{"value": "x", "partition": number} for number in (0, 1)]
    http.post(f"/v1/topics/{topic}/messages", json={"messages": both}).raise_for_status()
    served.run(sampler.sample())
    http.post(f"/v1/topics/{topic}/messages", json={"messages": [{"value": "x", "partition": 0}] * 3})
    served.run(sampler.sample())

    first, second = sampler.history.columns()["messages"][-2:]
    assert second - first == 3
    shown = http.get("/v1/totals/history").json()
    assert shown["interval_ms"] == 20_000
    assert len(shown["time_ms"]) == len(shown["messages"]) >= 1
