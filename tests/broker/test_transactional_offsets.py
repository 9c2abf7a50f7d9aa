"""Offset commits in transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla import Broker
from ottla.core.errors import ErrorCode
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

from .making import create_topic
from .raw_client import RawClient
from .transacting import NEW, OLD, Transactional

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.testing import EphemeralBroker

both_flows = pytest.mark.parametrize("flow", [OLD, NEW])


def committed(client: RawClient, group: str, topic: str, *, is_stable: bool = False) -> tuple[int, int]:
    """The error and the offset."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=(0,))
    request = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=group, topics=(wanted,)),), require_stable=is_stable
    )
    [part] = client.ask(request, 9).groups[0].topics[0].partitions
    return part.error_code, part.committed_offset


def commit_plainly(client: RawClient, group: str, topic: str, offset: int) -> None:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic(name=topic, partitions=(part,)),),
    )
    [answer] = client.ask(request, 9).topics
    assert answer.partitions[0].error_code == ErrorCode.NONE


def send_offset(producer: Transactional, group: str, topic: str, offset: int) -> None:
    if producer.flow == OLD:
        assert producer.add_group(group) == ErrorCode.NONE
    assert producer.send_offset(group, topic, offset) == ErrorCode.NONE


@both_flows
def test_transactional_offsets_become_visible_at_commit(client: RawClient, topic: str, flow: str) -> None:
    producer = Transactional(client, topic, flow)
    send_offset(producer, "g" + topic, topic, 5)
    assert committed(client, "g" + topic, topic) == (ErrorCode.NONE, -1)
    assert committed(client, "g" + topic, topic, is_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    producer.commit()
    assert committed(client, "g" + topic, topic, is_stable=True) == (ErrorCode.NONE, 5)


@both_flows
def test_offsets_of_an_aborted_transaction_are_discarded(client: RawClient, topic: str, flow: str) -> None:
    commit_plainly(client, topic, topic, 3)
    producer = Transactional(client, topic, flow)
    send_offset(producer, topic, topic, 5)
    producer.abort()
    assert committed(client, topic, topic, is_stable=True) == (ErrorCode.NONE, 3)


def test_a_later_commit_without_a_transaction_wins(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic, NEW)
    send_offset(producer, topic, topic, 5)
    commit_plainly(client, topic, topic, 9)
    producer.commit()
    assert committed(client, topic, topic, is_stable=True) == (ErrorCode.NONE, 9)


def test_of_two_transactions_the_later_offset_commit_wins_in_whatever_order_they_end(
    client: RawClient, topic: str
) -> None:
    first, second = Transactional(client, topic + "1", NEW), Transactional(client, topic + "2", NEW)
    send_offset(first, topic, topic, 5)
    send_offset(second, topic, topic, 6)
    second.commit()
    first.commit()
    assert committed(client, topic, topic, is_stable=True) == (ErrorCode.NONE, 6)


def test_a_fenced_producer_cannot_commit_offsets(client: RawClient, topic: str) -> None:
    zombie = Transactional(client, topic, NEW)
    Transactional(client, topic, NEW)
    assert zombie.send_offset(topic, topic, 5) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_before_kip_890_the_group_must_be_added_first(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic)
    assert producer.send_offset(topic, topic, 5) == ErrorCode.INVALID_TXN_STATE
    assert producer.add_group("") == ErrorCode.INVALID_GROUP_ID


def test_offsets_of_an_unknown_partition_are_refused(client: RawClient, topic: str) -> None:
    producer = Transactional(client, topic, NEW)
    assert producer.send_offset(topic, topic + "-unknown", 5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@both_flows
def test_committed_and_pending_offsets_survive_a_restart(ottla: EphemeralBroker, flow: str) -> None:
    with RawClient(ottla.bootstrap_servers) as client:
        create_topic(client, "t")
        producers = {name: Transactional(client, name, flow) for name in ("committed", "aborted", "open")}
        for number, (name, producer) in enumerate(producers.items()):
            send_offset(producer, name, "t", number)
        producers["committed"].commit()
        producers["aborted"].abort()

    ottla.restart()
    with RawClient(ottla.bootstrap_servers) as client:
        assert committed(client, "committed", "t", is_stable=True) == (ErrorCode.NONE, 0)
        assert committed(client, "aborted", "t", is_stable=True) == (ErrorCode.NONE, -1)
        assert committed(client, "open", "t", is_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        producers["open"].client = client
        producers["open"].commit()
        assert committed(client, "open", "t", is_stable=True) == (ErrorCode.NONE, 2)


def test_a_coordinator_that_loses_leadership_drops_pending_offsets(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "t")
        send_offset(Transactional(client, "p", NEW), "g", "t", 5)
        assert committed(client, "g", "t", is_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)

        broker.broker.groups.unload(0)

        # When it leads again it loads the log, which may no longer contain that transaction.
        assert committed(client, "g", "t", is_stable=True) == (ErrorCode.NONE, -1)
