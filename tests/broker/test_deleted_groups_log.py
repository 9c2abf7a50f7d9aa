"""Deleting __consumer_offsets deletes all groups at once and permanently; new groups can be created."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.groups.making import join_request

import ottla
from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

from .making import ask_until, create_topic, delete_topic, partition_count
from .raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.testing import EphemeralBroker

LOG = "__consumer_offsets"
ALLOWING = Settings(broker=BrokerConfig(allow_internal_topic_deletion=True))
FIRST_JOIN_WITHOUT_ID_REQUIRED = 3
BY_NAME = 7


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ottla.Broker]:
    """One broker per test, because the tests delete the state of all groups."""
    with ottla.Broker(tmp_path, ALLOWING._replace(net=replace(ALLOWING.net, port=0))) as broker:
        yield broker


@pytest.fixture
def ottla_settings() -> Settings:
    return ALLOWING


def commit(client: RawClient, group: str, topic: str, offset: int) -> None:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=None)
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(part,)),)
    [answer] = client.ask(OffsetCommitRequest(group_id=group, member_id="", topics=topics), BY_NAME).topics
    assert answer.partitions[0].error_code == ErrorCode.NONE


def committed(client: RawClient, group: str, topic: str) -> int:
    asked = OffsetFetchRequest(group_id=group, topics=(OffsetFetchRequestTopic(name=topic, partition_indexes=(0,)),))
    [answer] = client.ask(asked, BY_NAME).topics
    return answer.partitions[0].committed_offset


def groups(client: RawClient) -> list[str]:
    return sorted(group.group_id for group in client.ask(ListGroupsRequest()).groups)


def test_members_learn_that_their_group_is_gone(broker: ottla.Broker, client: RawClient) -> None:
    create_topic(client, LOG)
    joined = client.ask(join_request(), FIRST_JOIN_WITHOUT_ID_REQUIRED)
    assert joined.error_code == ErrorCode.NONE
    with RawClient(broker.bootstrap_servers) as another:
        waiting = another.send(join_request(), FIRST_JOIN_WITHOUT_ID_REQUIRED)
        rules = broker.broker.groups.rules
        ask_until(client, lambda: len(rules.describe("g", 5).members) == 2)
        delete_topic(client, LOG)
        assert another.receive(waiting).error_code == ErrorCode.NOT_COORDINATOR

    beat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    assert client.ask(beat).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups(client) == []
    assert client.ask(join_request(), FIRST_JOIN_WITHOUT_ID_REQUIRED).generation_id == 1


def test_offsets_are_gone_at_once_and_after_a_restart(ottla: EphemeralBroker) -> None:
    with RawClient(ottla.bootstrap_servers) as client:
        create_topic(client, "read")
        commit(client, "old", "read", 5)
        commit(client, "both", "read", 6)
        delete_topic(client, LOG)
        assert (committed(client, "old", "read"), committed(client, "both", "read")) == (-1, -1)
        assert groups(client) == []
        assert partition_count(client, LOG) == 0
        commit(client, "both", "read", 7)
        commit(client, "new", "read", 8)
        assert groups(client) == ["both", "new"]

    ottla.restart()
    with RawClient(ottla.bootstrap_servers) as client:
        assert groups(client) == ["both", "new"]
        found = [committed(client, group, "read") for group in ("old", "both", "new")]
        assert found == [-1, 7, 8]
