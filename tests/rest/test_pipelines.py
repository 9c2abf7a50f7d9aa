"""Pipelines over REST: their reports, and detection of silent ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ottla.core.pipeline_status import HEARTBEAT_MS, PIPELINES_TOPIC, PipelineStatus, QueryStatus, seen_state

if TYPE_CHECKING:
    import httpx


def tell(http: httpx.Client, status: PipelineStatus, age_ms: int = 0) -> None:
    now_ms = http.get("/v1/totals").json()["time_ms"]
    message = {
        "key": status.name,
        "value": msgspec.json.encode(status).decode(),
        "partition": 0,
        "timestamp": now_ms - age_ms,
    }
    assert http.post(f"/v1/topics/{PIPELINES_TOPIC}/messages", json={"messages": [message]}).status_code == 200


def running(name: str, **changes: object) -> PipelineStatus:
    query = QueryStatus(name="table", sink="parquet /table", batch=3, rows=40, rows_per_second=8.5, lag=7)
    fields = {"name": name, "state": "running", "started_ms": 1, "queries": (query,), **changes}
    return PipelineStatus(**fields)  # type: ignore[arg-type]


def test_the_last_report_of_each_pipeline_counts(http: httpx.Client, name: str) -> None:
    before = http.get("/v1/pipelines").json()["pipelines"]
    tell(http, running(name, state="starting"))
    tell(http, running(name))
    http.post(f"/v1/topics/{PIPELINES_TOPIC}/messages", json={"messages": [{"key": "x", "value": "?", "partition": 0}]})

    listed = http.get("/v1/pipelines").json()["pipelines"]
    assert [one["name"] for one in listed if one not in before] == [name]
    shown = http.get(f"/v1/pipelines/{name}").json()
    assert (shown["state"], shown["lag"], shown["rows"], shown["rows_per_second"]) == ("running", 7, 40, 8.5)
    assert shown["queries"][0]["sink"] == "parquet /table"

    tell(http, running(name, state="failed", error="the disk is full"))
    shown = http.get(f"/v1/pipelines/{name}").json()
    assert (shown["state"], shown["error"], shown["rows_per_second"]) == ("failed", "the disk is full", 0.0)


def test_a_silent_pipeline_is_lost(http: httpx.Client, name: str) -> None:
    tell(http, running(name), age_ms=4 * HEARTBEAT_MS)
    assert http.get(f"/v1/pipelines/{name}").json()["state"] == "lost"

    tell(http, running(name, state="stopped"), age_ms=4 * HEARTBEAT_MS)
    assert http.get(f"/v1/pipelines/{name}").json()["state"] == "stopped"


def test_an_unknown_pipeline_is_not_found(http: httpx.Client) -> None:
    answer = http.get("/v1/pipelines/nobody")
    assert answer.status_code == 404
    assert answer.json()["hint"] == "GET /v1/pipelines lists the pipelines."


def test_a_pipeline_and_its_topic_may_be_deleted(http: httpx.Client, name: str) -> None:
    tell(http, running(name))
    assert http.get(f"/v1/pipelines/{name}").status_code == 200
    gone = {"messages": [{"key": name, "value": None, "partition": 0}]}
    http.post(f"/v1/topics/{PIPELINES_TOPIC}/messages", json=gone)
    assert http.get(f"/v1/pipelines/{name}").status_code == 404

    tell(http, running(name))
    http.delete(f"/v1/topics/{PIPELINES_TOPIC}")
    assert http.get("/v1/pipelines").json() == {"pipelines": []}


def test_only_running_pipelines_can_be_lost() -> None:
    assert seen_state("running", 3 * HEARTBEAT_MS) == "running"
    assert seen_state("running", 3 * HEARTBEAT_MS + 1) == "lost"
    assert seen_state("starting", 3 * HEARTBEAT_MS + 1) == "lost"
    assert seen_state("failed", 10**9) == "failed"
