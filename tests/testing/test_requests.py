"""Requests of clients can be inspected and waited for."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.produce import ProduceRequest

from .clients import consumer, poll, producer, send

if TYPE_CHECKING:
    from ottla.testing import EphemeralBroker


def test_a_request_is_kept_as_it_was_decoded(ottla: EphemeralBroker) -> None:
    send(producer(ottla, **{"client.id": "shop"}), "orders", b"two coffees")
    [seen] = ottla.requests.of(api="Produce")
    assert isinstance(seen.body, ProduceRequest)
    assert (seen.client_id, seen.body.acks) == ("shop", -1)
    assert [(one.topic, one.partition) for one in seen.about] == [("orders", 0)]
    assert seen.version in range(3, 14)
    assert b"two coffees" in bytes(seen.body.topic_data[0].partition_data[0].records or b"")


def test_requests_are_filtered_by_what_they_name(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    with closing(consumer(ottla, "readers", **{"client.id": "c"})) as reader:
        reader.subscribe(["t"])
        poll(reader)
        reader.commit(asynchronous=False)
    [commit, *_] = ottla.requests.of(api="OffsetCommit", group="readers", topic="t", partition=0, client_id="c")
    assert isinstance(commit.body, OffsetCommitRequest)
    assert ottla.requests.of(api="OffsetCommit", group="others") == []
    assert ottla.requests.of(api="OffsetCommit", topic="others") == []
    assert ottla.requests.of(api="OffsetCommit", partition=1) == []
    assert ottla.requests.of(client_id="others") == []
    groups = {seen.api for seen in ottla.requests.of(group="readers")}
    assert {"FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch", "LeaveGroup"} <= groups


def test_every_fetch_names_what_it_asks_for(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    with closing(consumer(ottla, "readers")) as reader:
        reader.subscribe(["t"])
        poll(reader)
        ottla.requests.clear()
        assert reader.poll(0) is None
        [fetched, *_] = ottla.requests.wait_for(2, api="Fetch", topic="t")
    assert fetched.about[0] == ("t", 0)


def test_requests_of_the_kit_itself_are_not_recorded(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    ottla.records("t")
    assert list(ottla.requests) == []
    assert len(ottla.requests) == 0


def test_a_timeout_while_waiting_lists_the_received_requests(ottla: EphemeralBroker) -> None:
    send(producer(ottla), "t", b"x")
    with pytest.raises(TimeoutError, match=r"got 1 of 2 requests with api='Produce', topic='t' in 0.01 s; .*Metadata"):
        ottla.requests.wait_for(2, api="Produce", topic="t", timeout_s=0.01)


def test_an_api_that_does_not_exist_is_refused(ottla: EphemeralBroker) -> None:
    with pytest.raises(ValueError, match=r"unknown API 'OfsetCommit'; did you mean 'OffsetCommit'\?"):
        ottla.requests.of(api="OfsetCommit")
