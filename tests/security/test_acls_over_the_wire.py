"""ACLs as seen by clients: error codes, and hidden resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.broker.making import batch
from tests.broker.raw_client import HungUpError, RawClient
from tests.broker.sharing import ShareMember

import ottla
from ottla.client.admin.acls import Acl, AclFilter
from ottla.client.errors import BrokerError, ClientError
from ottla.core.errors import ErrorCode
from ottla.core.security import AclOperation, AclPermission, PatternType, ResourceType
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.share_fetch import ShareFetchRequest

from .test_gate import log_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .securing import Secured

READ, WRITE, DESCRIBE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE
TOPIC = ResourceType.TOPIC


@pytest.fixture(scope="module", autouse=True)
def _topics(guarded: Secured) -> None:
    with guarded.admin() as admin:
        for name in ("allowed", "denied"):
            admin.create_topic(name)


@pytest.fixture(autouse=True)
def _no_acls(guarded: Secured) -> None:
    with guarded.admin() as admin:
        admin.delete_acls(AclFilter())


@pytest.fixture
def ann(guarded: Secured) -> Iterator[RawClient]:
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        log_in(client, "ann")
        yield client


def allow(guarded: Secured, *operations: AclOperation, name: str = "allowed", kind: ResourceType = TOPIC) -> None:
    with guarded.admin() as admin:
        admin.create_acls(Acl("User:ann", one, kind, name) for one in operations)


def produce(*topics: str, acks: int = -1) -> ProduceRequest:
    data = tuple(
        TopicProduceData(name=name, partition_data=(PartitionProduceData(index=0, records=batch(b"x")),))
        for name in topics
    )
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=data)


def fetch(*topics: str, **session: int) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=tuple(FetchTopic(topic=name, partitions=(part,)) for name in topics),
        **session,
    )


def codes(answer: Any) -> dict[str, int]:
    if hasattr(answer.responses[0], "partition_responses"):
        return {one.name: one.partition_responses[0].error_code for one in answer.responses}
    return {one.topic: one.partitions[0].error_code for one in answer.responses}


def test_a_denied_topic_does_not_fail_the_others(guarded: Secured, ann: RawClient) -> None:
    allow(guarded, READ, WRITE)
    expected = {"allowed": ErrorCode.NONE, "denied": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert codes(ann.ask(produce("denied", "allowed"), 12)) == expected
    assert codes(ann.ask(fetch("denied", "allowed", session_epoch=-1), 12)) == expected


@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_denied_fetch_has_empty_records_and_no_high_watermark(ann: RawClient, version: int) -> None:
    [topic] = ann.ask(fetch("denied", session_epoch=-1), version).responses
    [part] = topic.partitions
    assert (topic.topic, part.partition_index, part.error_code) == ("denied", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (part.high_watermark, part.records, part.aborted_transactions) == (-1, b"", ())


@pytest.mark.parametrize("version", range(JoinGroupRequest.API.first, JoinGroupRequest.API.last + 1))
def test_a_join_is_denied_in_every_version(ann: RawClient, version: int) -> None:
    request = JoinGroupRequest(
        group_id="denied",
        session_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    assert ann.ask(request, version).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_denied_produce_with_acks_0_closes_the_connection(ann: RawClient) -> None:
    ann.send(produce("denied", acks=0), 12)
    with pytest.raises(HungUpError):
        ann.receive_frame()


def test_a_fetch_session_ends_when_its_topic_is_denied(guarded: Secured, ann: RawClient) -> None:
    allow(guarded, READ)
    with guarded.admin() as admin:
        begun = ann.ask(fetch("allowed", session_epoch=0), 12)
        assert begun.session_id
        ann_writes = RawClient(guarded.address("SASL_PLAINTEXT"))
        with ann_writes as writer:
            log_in(writer, "admin")
            assert codes(writer.ask(produce("allowed"), 12)) == {"allowed": ErrorCode.NONE}
        admin.delete_acls(AclFilter())
        again = ann.ask(fetch(session_id=begun.session_id, session_epoch=1), 12)
        assert (again.error_code, again.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ())


def test_a_session_does_not_include_denied_topics(guarded: Secured, ann: RawClient) -> None:
    allow(guarded, READ)
    answer = ann.ask(fetch("allowed", "denied", session_epoch=0), 12)
    assert answer.session_id == 0
    assert codes(answer)["denied"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_metadata_hides_topics_without_describe(guarded: Secured, ann: RawClient) -> None:
    allow(guarded, DESCRIBE)
    assert [one.name for one in ann.ask(MetadataRequest(topics=None)).topics] == ["allowed"]
    asked = tuple(MetadataRequestTopic(name=name) for name in ("allowed", "denied", "neither"))
    answer = ann.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    assert {one.name: one.error_code for one in answer.topics} == {
        "allowed": ErrorCode.NONE,
        "denied": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        # A missing topic looks the same as a hidden one.
        "neither": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_a_denied_topic_id_does_not_reveal_the_name(guarded: Secured, ann: RawClient) -> None:
    topic_id = guarded.embedded.broker.topics.by_name["denied"].raw_id
    answer = ann.ask(MetadataRequest(topics=(MetadataRequestTopic(topic_id=topic_id, name=None),)))
    [topic] = answer.topics
    assert (topic.error_code, topic.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)


def test_authorized_operations_reflect_acls(guarded: Secured, ann: RawClient) -> None:
    allow(guarded, READ)
    wanted = MetadataRequest(
        topics=(MetadataRequestTopic(name="allowed"),),
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    [topic] = ann.ask(wanted, 8).topics
    assert topic.topic_authorized_operations == 1 << READ | 1 << DESCRIBE
    assert ann.ask(wanted, 8).cluster_authorized_operations == 0


def test_creating_a_topic_requires_the_create_right(guarded: Secured) -> None:
    with guarded.admin("ann") as admin:
        with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
            admin.create_topic("made-by-ann")
        allow(guarded, CREATE, name="made-by-ann")
        admin.create_topic("made-by-ann")
        allow(guarded, CREATE, name="kafka-cluster", kind=ResourceType.CLUSTER)
        admin.create_topic("made-by-ann-too")


def test_a_group_requires_the_read_right(guarded: Secured) -> None:
    allow(guarded, READ)
    with (
        ottla.Consumer(
            guarded.address("SASL_SSL"),
            "allowed",
            group="readers",
            security=guarded.login("ann"),
            request_timeout_ms=3000,
        ) as consumer,
        pytest.raises(ClientError, match="GROUP_AUTHORIZATION_FAILED"),
    ):
        next(iter(consumer))


def test_acls_are_created_described_and_deleted(guarded: Secured) -> None:
    one = Acl("User:ann", READ, TOPIC, "allowed")
    two = Acl("User:bob", WRITE, TOPIC, "all", PatternType.PREFIXED, AclPermission.DENY, "10.0.0.1")
    with guarded.admin() as admin:
        assert admin.create_acls([one, two, one]) == {one: None, two: None}
        assert admin.list_acls() == [one, two]
        bearing = AclFilter(resource_type=TOPIC, resource_name="allowed", pattern_type=PatternType.MATCH)
        assert admin.list_acls(bearing) == [one, two]
        assert admin.list_acls(AclFilter(principal="User:bob")) == [two]
        assert admin.delete_acls(AclFilter(operation=READ)) == [one]
        assert admin.list_acls() == [two]


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_name": ""},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"operation": 0},
        {"permission_type": 1},
        {"principal": "ann"},
        {"principal": ""},
        {"resource_type": 4, "resource_name": "other-cluster"},
    ],
)
def test_an_invalid_acl_is_refused(guarded: Secured, wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:ann", "host": "*",
        "operation": 3, "permission_type": 3,
    }  # fmt: skip
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        log_in(client, "admin")
        [result] = client.ask(CreateAclsRequest(creations=(AclCreation(**(good | wrong)),))).results
        assert result.error_code == ErrorCode.INVALID_REQUEST


def test_without_an_authorizer_acls_cannot_be_listed_or_added(broker: Secured) -> None:
    with RawClient(broker.address("SASL_PLAINTEXT")) as client:
        log_in(client, "admin")
        answer = client.ask(
            DescribeAclsRequest(
                resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter=None,
                host_filter=None, operation=1, permission_type=1,
            )
        )  # fmt: skip
        assert answer.error_code == ErrorCode.SECURITY_DISABLED


def test_denials_and_changes_are_audited(guarded: Secured, ann: RawClient) -> None:
    ann.ask(produce("denied"), 12)
    allow(guarded, READ)
    lines = guarded.audit()
    denied = [one for one in lines if one["event"] == "denied" and one["api"] == "Produce"][-1]
    assert denied["principal"] == "User:ann"
    assert (denied["operation"], denied["resource"], denied["name"]) == ("WRITE", "TOPIC", "denied")
    change = [one for one in lines if one["event"] == "change" and one["api"] == "CreateAcls"][-1]
    assert (change["principal"], change["names"]) == ("User:admin", ["ALLOW User:ann READ TOPIC:allowed"])


def test_a_transaction_shows_only_describable_topics(guarded: Secured, ann: RawClient) -> None:
    allow(guarded, DESCRIBE, name="payments", kind=ResourceType.TRANSACTIONAL_ID)
    allow(guarded, DESCRIBE, name="allowed")
    asked = DescribeTransactionsRequest(transactional_ids=("payments", "hidden"))
    login = {"security": guarded.login(), "transactional_id": "payments"}
    with ottla.Producer(guarded.address("SASL_SSL"), **login) as producer, producer.transaction():
        for topic in ("allowed", "denied"):
            producer.send(topic, b"x")
        producer.flush()
        seen, hidden = ann.ask(asked).transaction_states
    assert [one.topic for one in seen.topics] == ["allowed"]
    assert hidden.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_share_session_returns_nothing_after_read_is_revoked(guarded: Secured, ann: RawClient) -> None:
    allow(guarded, READ, DESCRIBE)
    allow(guarded, READ, name="workers", kind=ResourceType.GROUP)
    [about] = ann.ask(MetadataRequest(topics=(MetadataRequestTopic(name="allowed"),))).topics
    member = ShareMember(ann, "workers", "allowed", about.topic_id)
    assert member.fetch().values == {}
    with guarded.admin() as admin:
        admin.delete_acls(AclFilter(resource_type=TOPIC))
    going_on = ShareFetchRequest(
        group_id=member.group,
        member_id=member.id,
        share_session_epoch=member.session_epoch,
        max_wait_ms=0,
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=(),
        forgotten_topics_data=(),
    )
    [answer] = ann.ask(going_on).responses
    assert answer.partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
