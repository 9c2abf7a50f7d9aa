"""Delayed records in share groups."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.core.errors import ErrorCode
from ottla.testing.ephemeral import EphemeralBroker

from .making import create_topic, produce, values_in
from .raw_client import RawClient
from .sharing import ACCEPT, ShareMember, produce_delayed

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MS = 3_600_000


def in_hours(hours: int) -> int:
    return time.time_ns() // 1_000_000 + hours * HOUR_MS


@pytest.mark.parametrize("codec", [0, 1, 4], ids=["plain", "gzip", "zstd"])
def test_a_record_is_delivered_when_due_and_others_do_not_wait_for_it(codec: int) -> None:
    with EphemeralBroker() as broker, RawClient(broker.bootstrap_servers) as client:
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        produce_delayed(
            client, "t", (b"in 2 hours", in_hours(2)), (b"now", None), (b"in 1 hour", in_hours(1)), codec=codec
        )
        produce(client, "t", b"now too")
        got = member.fetch()
        assert got.values == {1: b"now", 3: b"now too"}
        assert values_in(client, "t") == [b"in 2 hours", b"now", b"in 1 hour", b"now too"]
        assert member.acknowledge(1, 1, ACCEPT) == member.acknowledge(3, 3, ACCEPT) == ErrorCode.NONE

        broker.clock.advance(3500)
        assert member.fetch().values == {}
        sent = member.send_fetch()
        broker.clock.advance(101)
        assert member.receive(sent).values == {2: b"in 1 hour"}
        assert member.acknowledge(2, 2, ACCEPT) == ErrorCode.NONE
        broker.clock.advance(3600)
        assert member.fetch().values == {0: b"in 2 hours"}


def test_many_delayed_records_do_not_fill_the_window() -> None:
    with EphemeralBroker() as broker, RawClient(broker.bootstrap_servers) as client:
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        for _ in range(5):
            produce_delayed(client, "t", *[(b"later", in_hours(1))] * 1000)
        produce(client, "t", b"now")
        assert member.fetch().values == {5000: b"now"}
        assert member.acknowledge(5000, 5000, ACCEPT) == ErrorCode.NONE
        broker.clock.advance(3601)
        got = 0
        while offsets := member.fetch(max_records=1000).offsets:
            got += len(offsets)
            assert member.acknowledge(offsets[0], offsets[-1], ACCEPT) == ErrorCode.NONE
        assert got == 5000


def test_delays_survive_a_restart(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        produce_delayed(client, "t", (b"later", in_hours(1)), (b"soon", in_hours(0) + 300), (b"now", None))
        assert member.fetch().offsets == [2]
        assert member.acknowledge(2, 2, ACCEPT) == ErrorCode.NONE
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        member.client, member.session_epoch = client, 0
        assert member.fetch(wait_ms=5000).values == {1: b"soon"}
        assert member.fetch().values == {}
