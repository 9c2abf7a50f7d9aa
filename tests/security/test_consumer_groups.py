"""Authorization of consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.broker.raw_client import RawClient

from ottla.client.admin.acls import Acl, AclFilter
from ottla.core.errors import ErrorCode
from ottla.core.security import AclOperation, ResourceType
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

from .test_gate import log_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .securing import Secured


@pytest.fixture(scope="module", autouse=True)
def _topics(guarded: Secured) -> None:
    with guarded.admin() as admin:
        for name in ("seen-1", "seen-2"):
            admin.create_topic(name)


@pytest.fixture(autouse=True)
def _acls(guarded: Secured) -> None:
    with guarded.admin() as admin:
        admin.delete_acls(AclFilter())
        admin.create_acls(
            [
                Acl("User:ann", AclOperation.READ, ResourceType.GROUP, "*"),
                Acl("User:ann", AclOperation.DESCRIBE, ResourceType.TOPIC, "seen-1"),
            ]
        )


@pytest.fixture
def ann(guarded: Secured) -> Iterator[RawClient]:
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        log_in(client, "ann")
        yield client


def join(client: RawClient, group: str, **subscription: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="ann",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        topic_partitions=(),
        **subscription,
    )
    return client.ask(request)


def described(client: RawClient, group: str) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=(group,), include_authorized_operations=True)
    return client.ask(request).groups[0]


def test_a_topic_without_describe_cannot_be_subscribed_to(ann: RawClient) -> None:
    refused = join(ann, "by-name", subscribed_topic_names=("seen-1", "seen-2"))
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert join(ann, "by-name", subscribed_topic_names=("seen-1",)).error_code == ErrorCode.NONE


def test_a_pattern_matches_only_describable_topics(ann: RawClient) -> None:
    assert len(join(ann, "by-pattern", subscribed_topic_regex="seen-.*").assignment.topic_partitions) == 1
    group = described(ann, "by-pattern")
    assert [topic.topic_name for topic in group.members[0].assignment.topic_partitions] == ["seen-1"]
    assert group.authorized_operations != -(1 << 31)


def test_a_group_with_hidden_topics_is_not_described(guarded: Secured, ann: RawClient) -> None:
    join(ann, "hidden", subscribed_topic_names=("seen-1",))
    assert described(ann, "hidden").members
    with guarded.admin() as admin:
        admin.delete_acls(AclFilter(resource_type=ResourceType.TOPIC))
    hidden = described(ann, "hidden")
    assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
