"""Limits on the creation and deletion of topics by clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.making import create_topic
from tests.broker.raw_client import RawClient
from tests.cli.serving import Serve

from ottla.core.errors import ErrorCode
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from pathlib import Path


def commit(client: RawClient, topic: str) -> int:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(part,)),)
    [answer] = client.ask(OffsetCommitRequest(group_id="g", member_id="", topics=topics), 8).topics
    return answer.partitions[0].error_code


def deleted(client: RawClient, name: str) -> tuple[int, str]:
    asked = DeleteTopicsRequest(topics=(DeleteTopicState(name=name, topic_id=bytes(16)),), timeout_ms=0)
    [answer] = client.ask(asked).responses
    return answer.error_code, answer.error_message or ""


@pytest.mark.parametrize("is_allowed", [False, True])
def test_internal_topics_are_deleted_only_if_the_operator_allows_it(tmp_path: Path, is_allowed: bool) -> None:  # noqa: FBT001
    options = ("--set", "broker.allow_internal_topic_deletion=true") if is_allowed else ()
    with Serve(tmp_path, *options) as served, RawClient(served.address) as client:
        create_topic(client, "t")
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)))
        assert commit(client, "t") == ErrorCode.NONE
        code, message = deleted(client, "__consumer_offsets")
        if is_allowed:
            assert code == ErrorCode.NONE
        else:
            assert code == ErrorCode.INVALID_TOPIC_EXCEPTION
            assert "broker.allow_internal_topic_deletion" in message
            assert commit(client, "t") == ErrorCode.NONE


def test_there_is_a_limit_on_partitions(tmp_path: Path) -> None:
    with Serve(tmp_path, "--set", "broker.max_partitions=10") as served, RawClient(served.address) as client:
        create_topic(client, "first", partitions=8)
        wanted = CreatableTopic(name="second", num_partitions=3, replication_factor=1, assignments=(), configs=())
        [refused] = client.ask(CreateTopicsRequest(topics=(wanted,), timeout_ms=1000)).topics
        assert refused.error_code == ErrorCode.POLICY_VIOLATION
        assert "exceed broker.max_partitions (10)" in (refused.error_message or "")
        more = CreatePartitionsTopic(name="first", count=11, assignments=None)
        [grown] = client.ask(CreatePartitionsRequest(topics=(more,), timeout_ms=1000, validate_only=False)).results
        assert grown.error_code == ErrorCode.POLICY_VIOLATION
        create_topic(client, "third", partitions=2)
        [auto] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="fourth"),))).topics
        assert auto.error_code == ErrorCode.POLICY_VIOLATION
        assert commit(client, "first") == ErrorCode.NONE  # internal topics are created all the same


def test_topic_creation_is_rate_limited(tmp_path: Path) -> None:
    options = ("--set", "broker.max_auto_created_topics_per_s=5")
    with Serve(tmp_path, *options) as served, RawClient(served.address) as client:
        names = tuple(MetadataRequestTopic(name=f"auto-{number}") for number in range(200))
        codes = [topic.error_code for topic in client.ask(MetadataRequest(topics=names)).topics]
        assert 5 <= codes.count(ErrorCode.NONE) < 100
        assert set(codes) == {ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE}
