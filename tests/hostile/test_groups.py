"""Members and offsets of groups: how much memory a client can make the broker keep."""

from __future__ import annotations

import re
import urllib.request
from typing import TYPE_CHECKING

import pytest
from tests.broker.making import create_topic
from tests.broker.raw_client import RawClient
from tests.cli.serving import Serve

from ottla.core.errors import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIB = 1 << 20
_LIMIT = 4 * _MIB


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    options = ("--http-port", "0", "--set", f"groups.max_memory_bytes={_LIMIT}")
    with Serve(tmp_path_factory.mktemp("served"), *options) as served, RawClient(served.address) as client:
        create_topic(client, "t")
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)))
        yield served


@pytest.fixture
def client(served: Serve) -> Iterator[RawClient]:
    with RawClient(served.address) as client:
        yield client


def join(client: RawClient, group: str, metadata: bytes = b"", instance: str | None = None) -> JoinGroupResponse:
    """Join without requesting a member id first, as clients before KIP-394 do."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=1000,
        member_id="",
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
    )
    return client.ask(request, 3 if instance is None else 5)


def leave(client: RawClient, group: str, member_id: str) -> None:
    request = LeaveGroupRequest(group_id=group, members=(MemberIdentity(member_id=member_id),))
    assert client.ask(request).error_code == ErrorCode.NONE


def commit(client: RawClient, group: str, metadata: str) -> int:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=metadata)
    topics = (OffsetCommitRequestTopic(name="t", partitions=(part,)),)
    [answer] = client.ask(OffsetCommitRequest(group_id=group, member_id="", topics=topics), 8).topics
    return answer.partitions[0].error_code


def beat(client: RawClient, group: str, topics: tuple[str, ...], instance: str | None = None) -> tuple[int, str]:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        member_epoch=0,
        instance_id=instance,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=topics,
        topic_partitions=(),
    )
    answer = client.ask(request)
    return answer.error_code, answer.error_message or ""


def share(client: RawClient, group: str, topics: tuple[str, ...]) -> tuple[int, str]:
    request = ShareGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=0, subscribed_topic_names=topics)
    answer = client.ask(request)
    return answer.error_code, answer.error_message or ""


def metric(served: Serve, name: str) -> int:
    with urllib.request.urlopen(f"http://{served.ready['http']}/metrics") as answer:
        found = re.search(rf"^{name} (\d+)$", answer.read().decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_a_member_cannot_leave_megabytes_of_metadata_behind(served: Serve, client: RawClient) -> None:
    before = metric(served, "ottla_groups_memory_bytes")
    assert join(client, "large", bytes(3 * _MIB)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert metric(served, "ottla_groups_memory_bytes") == before
    assert metric(served, "ottla_group_requests_too_large_total") >= 1


def test_a_leader_cannot_assign_megabytes(client: RawClient) -> None:
    joined = join(client, "assigned")
    assigned = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(3 * _MIB))
    request = SyncGroupRequest(
        group_id="assigned", generation_id=joined.generation_id, member_id=joined.member_id, assignments=(assigned,)
    )
    assert client.ask(request).error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # as in Kafka
    leave(client, "assigned", joined.member_id)


def test_a_subscription_cannot_be_megabytes(client: RawClient) -> None:
    names = tuple(f"{number}".rjust(200, "x") for number in range(10_000))
    for code, message in (beat(client, "new", names), share(client, "shared", names)):
        assert code == ErrorCode.INVALID_REQUEST
        assert "groups.max_member_bytes is 1048576" in message


def test_ids_of_a_group_have_a_limit(served: Serve, client: RawClient) -> None:
    long = "x" * 2000
    assert join(client, long).error_code == ErrorCode.INVALID_GROUP_ID
    assert join(client, "g", instance=long).error_code == ErrorCode.INVALID_REQUEST
    assert commit(client, long, "") == ErrorCode.INVALID_GROUP_ID
    assert beat(client, long, ("t",))[0] == ErrorCode.INVALID_GROUP_ID
    assert beat(client, "new", ("t",), instance=long)[0] == ErrorCode.INVALID_REQUEST
    assert share(client, long, ("t",))[0] == ErrorCode.INVALID_GROUP_ID
    with RawClient(served.address, client_id=long) as named:
        assert join(named, "g").error_code == ErrorCode.INVALID_REQUEST
        assert beat(named, "new", ("t",))[0] == ErrorCode.INVALID_REQUEST
        assert share(named, "shared", ("t",))[0] == ErrorCode.INVALID_REQUEST


def test_the_memory_of_all_groups_is_limited_and_freed_when_members_leave(served: Serve, client: RawClient) -> None:
    before = metric(served, "ottla_groups_memory_bytes")
    members: list[str] = []
    while (joined := join(client, f"many-{len(members)}", bytes(_MIB // 2))).error_code == ErrorCode.NONE:
        members.append(joined.member_id)
    assert joined.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert 6 <= len(members) <= 8
    assert _LIMIT - _MIB < metric(served, "ottla_groups_memory_bytes") <= _LIMIT

    names = tuple(f"{number}".rjust(200, "x") for number in range(2000))
    for code, message in (beat(client, "new", names), share(client, "shared", names)):
        assert code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert f"groups.max_memory_bytes is {_LIMIT}" in message

    leave(client, "many-0", members[0])
    assert join(client, "many-0", bytes(_MIB // 2)).error_code == ErrorCode.NONE
    for number, member_id in list(enumerate(members))[1:]:
        leave(client, f"many-{number}", member_id)
    assert metric(served, "ottla_groups_memory_bytes") < before + _MIB


def test_offsets_of_many_groups_have_a_limit(served: Serve, client: RawClient) -> None:
    note = "x" * 4000
    assert commit(client, "first", note) == ErrorCode.NONE
    codes = [commit(client, f"flood-{number}", note) for number in range(1000)]
    assert codes[0] == ErrorCode.NONE
    assert codes[-1] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert commit(client, "first", note) == ErrorCode.NONE  # existing offsets may still be updated
    assert metric(served, "ottla_groups_memory_bytes") <= _LIMIT
