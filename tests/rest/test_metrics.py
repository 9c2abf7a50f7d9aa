"""`/metrics`, `/health` and `/ready` of a running broker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from tests.broker.making import batch, produce, send_batch
from tests.broker.raw_client import RawClient

import ottla
from ottla.core.pipeline_status import PIPELINES_TOPIC, PipelineStatus, QueryStatus

if TYPE_CHECKING:
    import httpx

    from .serving import HttpBroker

SAMPLE = re.compile(r"(ottla_[a-z0-9_]+)(\{[^ ]*\})? ([0-9.e+-]+)")


def samples(http: httpx.Client) -> dict[str, float]:
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("# EOF\n")
    found = {}
    for line in answer.text.splitlines():
        if not line.startswith("#"):
            sample = SAMPLE.fullmatch(line)
            assert sample is not None, line
            found[sample[1] + (sample[2] or "")] = float(sample[3])
    return found


def test_kafka_requests_are_counted_with_errors_and_durations(
    served: HttpBroker, http: httpx.Client, topic: str
) -> None:
    with RawClient(served.servers) as client:
        produce(client, topic, b"x")
        send_batch(client, topic, batch(b"x"), partition=9)
        found = samples(http)
        assert found["ottla_connections"] == 1
    assert found['ottla_requests_total{api="Produce"}'] == 2
    assert found['ottla_request_errors_total{api="Produce",error="UNKNOWN_TOPIC_OR_PARTITION"}'] == 1
    assert found['ottla_request_bytes_total{api="Produce"}'] > 100
    assert found['ottla_request_seconds_count{api="Produce"}'] == 2
    assert found['ottla_request_seconds_bucket{api="Produce",le="+Inf"}'] == 2
    assert found['ottla_request_seconds_sum{api="Produce"}'] > 0


def test_log_sizes_and_lag_are_shown_by_partition(http: httpx.Client, topic: str) -> None:
    http.post(f"/v1/topics/{topic}/messages", json={"messages": [{"value": "x", "partition": 1}] * 3})
    offsets = [{"topic": topic, "partition": 1, "offset": 1}]
    http.post(f"/v1/consumers/{topic}/commit", json={"offsets": offsets})
    found = samples(http)
    assert found[f'ottla_log_end_offset{{topic="{topic}",partition="1"}}'] == 3
    assert found[f'ottla_log_size_bytes{{topic="{topic}",partition="1"}}'] > 61
    assert found[f'ottla_group_lag{{group="{topic}",topic="{topic}",partition="1"}}'] == 2
    assert found['ottla_groups{state="Empty",type="classic"}'] >= 1


def test_pipelines_are_shown_with_their_last_report(served: HttpBroker, http: httpx.Client) -> None:
    watermark = "1970-01-01T00:01:00.000Z"
    query = QueryStatus(name="lake", sink="delta x", rows=7, lag=3, lag_seconds=4.5, restarts=2, watermark=watermark)
    letters = QueryStatus(name="orders-dead-letters", sink="topic x", rows=6, dead_letters=6)
    status = PipelineStatus(name="shop", state="failed", started_ms=5, queries=(query, letters))
    with ottla.Producer(served.servers) as producer:
        producer.send(PIPELINES_TOPIC, msgspec.json.encode(status), key=b"shop")
    found = samples(http)
    assert found['ottla_pipeline_state{pipeline="shop",state="failed"}'] == 1
    assert found['ottla_pipeline_lag{pipeline="shop",query="lake"}'] == 3
    assert found['ottla_pipeline_lag_seconds{pipeline="shop",query="lake"}'] == 4.5
    assert found['ottla_pipeline_dead_letters{pipeline="shop",query="orders-dead-letters"}'] == 6
    assert found['ottla_pipeline_restarts{pipeline="shop",query="lake"}'] == 2
    assert found['ottla_pipeline_watermark_seconds{pipeline="shop",query="lake"}'] == 60


def test_http_and_event_loop_metrics_are_shown(http: httpx.Client, topic: str) -> None:
    http.get("/nope")
    before = samples(http)
    http.get(f"/v1/topics/{topic}")
    while (after := samples(http))["ottla_event_loop_delay_seconds_count"] < 2:
        pass
    shown = 'ottla_http_requests_total{method="GET",route="/v1/topics/{name}",status="200"}'
    assert after[shown] == before.get(shown, 0) + 1
    assert after['ottla_http_requests_total{method="GET",route="",status="404"}'] >= 1
    assert after["ottla_http_request_seconds_count"] > before["ottla_http_request_seconds_count"]


def test_a_label_may_hold_anything(http: httpx.Client, topic: str) -> None:
    offsets = {"offsets": [{"topic": topic, "partition": 0, "offset": 0}]}
    http.post("/v1/consumers/a%22b%0A%5C/commit", json=offsets)
    assert f'ottla_group_lag{{group="a\\"b\\n\\\\",topic="{topic}",partition="0"}} 0' in http.get("/metrics").text


def test_it_is_healthy_and_ready(served: HttpBroker, http: httpx.Client) -> None:
    expected = {"status": "ok", "node_id": 0, "kafka": served.servers, "partitions_without_leader": 0}
    assert http.get("/health").json() == expected
    assert http.get("/ready").json() == expected


def test_it_is_not_ready_while_a_partition_is_offline(served: HttpBroker, http: httpx.Client, topic: str) -> None:
    log = served.broker.topics.by_name[topic].partitions[0].log
    log._offline = "fsync failed"
    try:
        refused = http.get("/ready")
        assert (refused.status_code, refused.json()["detail"]) == (503, f"offline: {topic}-0")
        assert http.get("/health").status_code == 200
        assert samples(http)[f'ottla_log_offline{{topic="{topic}",partition="0"}}'] == 1
    finally:
        log._offline = None
