"""Metrics of the dispatcher and the flusher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.metrics import Histogram
from ottla.core.errors import ErrorCode
from ottla.wire.messages.list_groups import ListGroupsRequest

from .making import ask_until, batch, fetch, produce, send_batch

if TYPE_CHECKING:
    import ottla
    from ottla.broker.metrics import ApiStats

    from .raw_client import RawClient


def stats_of(broker: ottla.Broker, name: str) -> ApiStats:
    [found] = [one for one in broker.broker.dispatcher.stats if one.name == name]
    return found


def test_duration_buckets_are_cumulative() -> None:
    histogram = Histogram()
    for elapsed_ns in (0, 900, 5_000, 2_000_000_000):
        histogram.add(elapsed_ns)
    bounds = dict(histogram.cumulative())
    assert bounds[1024e-9] == 2
    assert bounds[16384e-9] == 3
    assert max(bounds.values()) == histogram.count == 4
    assert histogram.total_s == 2.0000059
    assert list(bounds) == sorted(bounds)


def test_requests_are_counted_by_api_with_their_bytes_and_time(
    broker: ottla.Broker, client: RawClient, topic: str
) -> None:
    produce(client, topic, b"x" * 1000)
    before = stats_of(broker, "Produce")
    count, bytes_in, bytes_out = before.count, before.bytes_in, before.bytes_out
    produce(client, topic, b"x" * 1000)
    after = stats_of(broker, "Produce")
    assert after.count == count + 1
    assert 1000 < after.bytes_in - bytes_in < 1300
    assert after.bytes_out > bytes_out
    assert after.total_s > 0


def test_refused_partitions_are_counted_by_error(broker: ottla.Broker, client: RawClient, topic: str) -> None:
    produce(client, topic, b"one")
    before = dict(stats_of(broker, "Produce").errors)
    assert send_batch(client, topic, batch(b"two"), partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert send_batch(client, topic, b"garbage" * 20).error_code != ErrorCode.NONE
    after = stats_of(broker, "Produce").errors
    name = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name
    assert after[name] == before.get(name, 0) + 1
    assert sum(after.values()) == sum(before.values()) + 2


def test_errors_nested_in_a_response_are_counted(broker: ottla.Broker, client: RawClient, topic: str) -> None:
    fetch(client, topic)
    before = stats_of(broker, "Fetch").errors.get("OFFSET_OUT_OF_RANGE", 0)
    assert fetch(client, topic, offset=7).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert stats_of(broker, "Fetch").errors["OFFSET_OUT_OF_RANGE"] == before + 1


def test_a_response_without_errors_counts_none(broker: ottla.Broker, client: RawClient) -> None:
    client.ask(ListGroupsRequest())
    assert stats_of(broker, "ListGroups").errors == {}


def test_fsyncs_are_timed(broker: ottla.Broker, client: RawClient, topic: str) -> None:
    times = broker.broker.flusher.fsync_times
    count = times.count
    produce(client, topic, b"one")
    ask_until(client, lambda: times.count > count)
    assert times.total_ns > 0
