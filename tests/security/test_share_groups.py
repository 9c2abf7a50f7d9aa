"""Authorization of share groups with hidden topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.raw_client import RawClient

from ottla.client.admin.acls import Acl
from ottla.core.errors import ErrorCode
from ottla.core.security import AclOperation, ResourceType
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

from .test_gate import log_in
from .test_rest import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .securing import Secured

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture(scope="module", autouse=True)
def _group(guarded: Secured) -> None:
    """Group `both`, with a member, reads a topic that ann may describe, and one that she may not."""
    with guarded.admin() as admin:
        admin.create_topic("seen")
        admin.create_topic("hidden")
        admin.create_acls(
            [
                Acl("User:ann", AclOperation.DESCRIBE, ResourceType.GROUP, "*"),
                Acl("User:ann", AclOperation.DESCRIBE, ResourceType.TOPIC, "seen"),
            ]
        )
    for group, topics in (("both", ("seen", "hidden")), ("mine", ("seen",))):
        with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
            log_in(client, "admin")
            request = ShareGroupHeartbeatRequest(
                group_id=group, member_id=MEMBER, member_epoch=0, subscribed_topic_names=topics
            )
            while (answer := client.ask(request)).assignment is None:
                assert answer.error_code == ErrorCode.NONE


@pytest.fixture
def ann(guarded: Secured) -> Iterator[RawClient]:
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        log_in(client, "ann")
        yield client


def test_a_group_with_a_hidden_topic_is_not_described(ann: RawClient) -> None:
    answer = ann.ask(ShareGroupDescribeRequest(group_ids=("both", "mine"), include_authorized_operations=True))
    described = {group.group_id: group for group in answer.groups}
    assert (described["both"].error_code, described["both"].members) == (DENIED, ())
    assert described["mine"].error_code == ErrorCode.NONE
    assert [member.subscribed_topic_names for member in described["mine"].members] == [("seen",)]
    assert described["mine"].authorized_operations == 1 << AclOperation.DESCRIBE


def offsets(client: RawClient, *names: str) -> dict[str, list[tuple[int, int]]]:
    """Code and start of each partition, by topic; of all topics, if none is named."""
    topics = tuple(DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=(0,)) for name in names)
    group = DescribeShareGroupOffsetsRequestGroup(group_id="both", topics=topics or None)
    [answer] = client.ask(DescribeShareGroupOffsetsRequest(groups=(group,))).groups
    assert answer.error_code == ErrorCode.NONE
    assert all(one.topic_id == bytes(16) for one in answer.topics if one.topic_name == "hidden")
    return {one.topic_name: [(part.error_code, part.start_offset) for part in one.partitions] for one in answer.topics}


def test_offsets_of_all_topics_leave_out_the_hidden_ones(ann: RawClient) -> None:
    assert set(offsets(ann)) == {"seen"}


def test_offsets_of_a_hidden_topic_are_refused_like_those_of_a_missing_one(ann: RawClient) -> None:
    found = offsets(ann, "hidden", "nothing", "seen")
    assert found["hidden"] == found["nothing"]
    assert found["hidden"][0][0] == DENIED
    assert found["seen"][0][0] == ErrorCode.NONE


def test_over_rest_such_a_group_is_listed_without_its_members_beside_the_others(guarded: Secured) -> None:
    with served(guarded) as http, http.by("ann") as client:
        groups = {one["id"]: one for one in client.get("/v1/groups").json()["groups"]}
        assert groups["both"]["members"] is None
        assert groups["mine"]["members"] == 1
        assert client.get("/v1/groups/both").status_code == 403
        found = client.get("/v1/groups/both/offsets").json()["offsets"]
        assert {one["topic"] for one in found} <= {"seen"}
