"""A sample request of every API, and the ACLs it requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.core.errors import ErrorCode
from ottla.records.encode import BatchBuilder
from ottla.storage.catalog.entries import AclOperation as Op
from ottla.storage.catalog.entries import ResourceType
from ottla.wire.apis import APIS, request_type
from ottla.wire.declare import NO_UUID
from ottla.wire.messages import (
    alter_configs,
    delete_share_group_state,
    incremental_alter_configs,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from ottla.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from ottla.wire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from ottla.wire.messages.create_acls import AclCreation
from ottla.wire.messages.create_partitions import CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic
from ottla.wire.messages.delete_acls import DeleteAclsFilter
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from ottla.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequestTopic
from ottla.wire.messages.delete_topics import DeleteTopicState
from ottla.wire.messages.describe_configs import DescribeConfigsResource
from ottla.wire.messages.describe_producers import TopicRequest as ProducersTopic
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.describe_topic_partitions import TopicRequest
from ottla.wire.messages.describe_user_scram_credentials import UserName
from ottla.wire.messages.elect_leaders import TopicPartitions
from ottla.wire.messages.fetch import FetchPartition, FetchTopic
from ottla.wire.messages.leave_group import MemberIdentity
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequestTopic
from ottla.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic
from ottla.wire.messages.produce import PartitionProduceData, TopicProduceData
from ottla.wire.messages.share_acknowledge import AcknowledgePartition, AcknowledgeTopic
from ottla.wire.messages.share_fetch import FetchPartition as ShareFetchPartition
from ottla.wire.messages.share_fetch import FetchTopic as ShareFetchTopic
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from ottla.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic

if TYPE_CHECKING:
    from ottla.wire.declare import Request

TOPIC_ID = b"0123456789abcdef"
TOPIC = ResourceType.TOPIC, "orders"
GROUP = ResourceType.GROUP, "readers"
TXN = ResourceType.TRANSACTIONAL_ID, "payments"
CLUSTER = ResourceType.CLUSTER, "kafka-cluster"
STATE_TOPICS = {
    "InitializeShareGroupState": initialize_share_group_state.InitializeShareGroupStateTopic(
        topic_id=TOPIC_ID,
        partitions=(initialize_share_group_state.PartitionData(partition=0, state_epoch=0, start_offset=0),),
    ),
    "ReadShareGroupState": read_share_group_state.ReadShareGroupStateTopic(
        topic_id=TOPIC_ID, partitions=(read_share_group_state.PartitionData(partition=0, leader_epoch=0),)
    ),
    "WriteShareGroupState": write_share_group_state.WriteShareGroupStateTopic(
        topic_id=TOPIC_ID,
        partitions=(
            write_share_group_state.PartitionData(
                partition=0, state_epoch=0, leader_epoch=0, start_offset=0, state_batches=()
            ),
        ),
    ),
    "DeleteShareGroupState": delete_share_group_state.DeleteShareGroupStateTopic(
        topic_id=TOPIC_ID, partitions=(delete_share_group_state.PartitionData(partition=0),)
    ),
    "ReadShareGroupStateSummary": read_share_group_state_summary.ReadShareGroupStateSummaryTopic(
        topic_id=TOPIC_ID, partitions=(read_share_group_state_summary.PartitionData(partition=0, leader_epoch=0),)
    ),
}

Needed = tuple[Op, tuple[ResourceType, str]]


class Sample(NamedTuple):
    request: Request
    version: int
    needed: tuple[Needed, ...]
    """All of them; without any one of them it is refused."""
    code: ErrorCode | None = None
    """The error code, if it is not that of the missing resource."""


def _of(name: str, *needed: Needed, version: int | None = None, code: ErrorCode | None = None, **fields: Any) -> Sample:
    [api] = [one for one in APIS.values() if one.name == name]
    return Sample(request_type(api)(**fields), api.last if version is None else version, needed, code)


def _configs(kind: int, name: str, operation: Op, resource: tuple[ResourceType, str]) -> list[Sample]:
    described = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    replaced = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=())
    altered = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=())
    if operation is Op.DESCRIBE_CONFIGS:
        return [_of("DescribeConfigs", (operation, resource), resources=(described,))]
    return [
        _of("AlterConfigs", (operation, resource), resources=(replaced,), validate_only=False),
        _of("IncrementalAlterConfigs", (operation, resource), resources=(altered,), validate_only=False),
    ]


_member = {"group_id": "readers", "member_id": "m"}
_txn = {"transactional_id": "payments", "producer_id": 1, "producer_epoch": 0}
_batch, _batch_in_txn = BatchBuilder(), BatchBuilder()
for builder in (_batch, _batch_in_txn):
    builder.append(0, None, b"v")


def _produced(records: bytes) -> TopicProduceData:
    return TopicProduceData(
        name="orders", topic_id=TOPIC_ID, partition_data=(PartitionProduceData(index=0, records=records),)
    )


_plain = _produced(bytes(_batch.build()))
_in_txn = _produced(bytes(_batch_in_txn.build(producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)))
_fetched = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
_fetch = {"max_wait_ms": 0, "min_bytes": 0, "session_epoch": -1}
_created = CreatableTopic(name="orders", num_partitions=1, replication_factor=1, assignments=(), configs=())
_commit = OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata=None)
_committed = OffsetFetchRequestTopic(name="orders", partition_indexes=(0,))
_committed_in_group = OffsetFetchRequestTopics(name="orders", topic_id=TOPIC_ID, partition_indexes=(0,))
_filter = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
_acl = {"resource_type": 2, "resource_name": "orders", "principal": "User:ann", "host": "*"}

SAMPLES = (
    _of("ApiVersions"),
    _of("SaslHandshake", mechanism="PLAIN"),
    _of("SaslAuthenticate", auth_bytes=b""),
    _of("DescribeCluster", include_cluster_authorized_operations=False),
    _of("Produce", (Op.WRITE, TOPIC), version=12, acks=-1, timeout_ms=0, topic_data=(_plain,)),
    _of(
        "Produce",
        (Op.WRITE, TOPIC),
        (Op.WRITE, TXN),
        version=12,
        transactional_id="payments",
        acks=-1,
        timeout_ms=0,
        topic_data=(_in_txn,),
    ),
    _of("Fetch", (Op.READ, TOPIC), version=12, topics=(FetchTopic(topic="orders", partitions=(_fetched,)),), **_fetch),
    _of(
        "Fetch",
        (Op.READ, TOPIC),
        topics=(FetchTopic(topic="orders", topic_id=TOPIC_ID, partitions=(_fetched,)),),
        **_fetch,
    ),
    _of(
        "Fetch",
        (Op.CLUSTER_ACTION, CLUSTER),
        version=12,
        replica_id=3,
        topics=(FetchTopic(topic="orders", partitions=(_fetched,)),),
        code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        **_fetch,
    ),
    _of(
        "ListOffsets",
        (Op.DESCRIBE, TOPIC),
        replica_id=-1,
        topics=(ListOffsetsTopic(name="orders", partitions=(ListOffsetsPartition(partition_index=0, timestamp=-1),)),),
    ),
    _of(
        "OffsetForLeaderEpoch",
        (Op.DESCRIBE, TOPIC),
        topics=(
            OffsetForLeaderTopic(topic="orders", partitions=(OffsetForLeaderPartition(partition=0, leader_epoch=0),)),
        ),
    ),
    _of("Metadata", (Op.DESCRIBE, TOPIC), topics=(MetadataRequestTopic(name="orders"),)),
    _of("Metadata", (Op.DESCRIBE, TOPIC), topics=(MetadataRequestTopic(topic_id=TOPIC_ID, name=None),)),
    _of(
        "Metadata",
        (Op.DESCRIBE, (ResourceType.TOPIC, "new")),
        (Op.CREATE, (ResourceType.TOPIC, "new")),
        topics=(MetadataRequestTopic(name="new"),),
        allow_auto_topic_creation=True,
    ),
    _of("DescribeTopicPartitions", (Op.DESCRIBE, TOPIC), topics=(TopicRequest(name="orders"),)),
    _of("CreateTopics", (Op.CREATE, TOPIC), topics=(_created,)),
    _of("DeleteTopics", (Op.DELETE, TOPIC), version=5, topic_names=("orders",), timeout_ms=30_000),
    _of(
        "DeleteTopics",
        (Op.DELETE, TOPIC),
        topics=(DeleteTopicState(name="orders", topic_id=NO_UUID),),
        timeout_ms=30_000,
    ),
    _of(
        "DeleteTopics", (Op.DELETE, TOPIC), topics=(DeleteTopicState(name=None, topic_id=TOPIC_ID),), timeout_ms=30_000
    ),
    _of(
        "CreatePartitions",
        (Op.ALTER, TOPIC),
        topics=(CreatePartitionsTopic(name="orders", count=2, assignments=None),),
        timeout_ms=30_000,
        validate_only=False,
    ),
    _of(
        "DeleteRecords",
        (Op.DELETE, TOPIC),
        topics=(DeleteRecordsTopic(name="orders", partitions=(DeleteRecordsPartition(partition_index=0, offset=0),)),),
        timeout_ms=30_000,
    ),
    _of("DescribeProducers", (Op.READ, TOPIC), topics=(ProducersTopic(name="orders", partition_indexes=(0,)),)),
    _of("FindCoordinator", (Op.DESCRIBE, GROUP), version=3, key="readers"),
    _of("FindCoordinator", (Op.DESCRIBE, GROUP), coordinator_keys=("readers",)),
    _of("FindCoordinator", (Op.DESCRIBE, TXN), coordinator_keys=("payments",), key_type=1),
    _of("FindCoordinator", (Op.CLUSTER_ACTION, CLUSTER), coordinator_keys=("readers:0:0",), key_type=2),
    _of("JoinGroup", (Op.READ, GROUP), session_timeout_ms=1, protocol_type="consumer", protocols=(), **_member),
    _of(
        "SyncGroup",
        (Op.READ, GROUP),
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(),
        **_member,
    ),
    _of("Heartbeat", (Op.READ, GROUP), generation_id=1, **_member),
    _of("LeaveGroup", (Op.READ, GROUP), version=2, **_member),
    _of("LeaveGroup", (Op.READ, GROUP), group_id="readers", members=(MemberIdentity(member_id="m"),)),
    _of(
        "OffsetCommit",
        (Op.READ, GROUP),
        (Op.READ, TOPIC),
        topics=(OffsetCommitRequestTopic(name="orders", topic_id=TOPIC_ID, partitions=(_commit,)),),
        **_member,
    ),
    _of("OffsetFetch", (Op.DESCRIBE, GROUP), version=7, group_id="readers", topics=()),
    _of("OffsetFetch", (Op.DESCRIBE, GROUP), groups=(OffsetFetchRequestGroup(group_id="readers", topics=()),)),
    _of("OffsetFetch", (Op.DESCRIBE, GROUP), version=7, group_id="readers", topics=(_committed,)),
    _of(
        "OffsetFetch",
        (Op.DESCRIBE, GROUP),
        version=9,
        groups=(OffsetFetchRequestGroup(group_id="readers", topics=(_committed_in_group,)),),
    ),
    _of(
        "OffsetDelete",
        (Op.DELETE, GROUP),
        (Op.READ, TOPIC),
        group_id="readers",
        topics=(
            OffsetDeleteRequestTopic(name="orders", partitions=(OffsetDeleteRequestPartition(partition_index=0),)),
        ),
    ),
    _of("ListGroups"),
    _of("DescribeGroups", (Op.DESCRIBE, GROUP), groups=("readers",)),
    _of("DeleteGroups", (Op.DELETE, GROUP), groups_names=("readers",)),
    _of(
        "ConsumerGroupHeartbeat",
        (Op.READ, GROUP),
        (Op.DESCRIBE, TOPIC),
        member_epoch=0,
        subscribed_topic_names=("orders",),
        **_member,
    ),
    _of("ConsumerGroupDescribe", (Op.DESCRIBE, GROUP), group_ids=("readers",), include_authorized_operations=False),
    _of(
        "ShareGroupHeartbeat",
        (Op.READ, GROUP),
        (Op.DESCRIBE, TOPIC),
        member_epoch=0,
        subscribed_topic_names=("orders",),
        **_member,
    ),
    _of("ShareGroupDescribe", (Op.DESCRIBE, GROUP), group_ids=("readers",), include_authorized_operations=False),
    _of(
        "ShareFetch",
        (Op.READ, GROUP),
        (Op.READ, TOPIC),
        share_session_epoch=0,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        max_records=1,
        batch_size=1,
        topics=(
            ShareFetchTopic(
                topic_id=TOPIC_ID,
                partitions=(ShareFetchPartition(partition_index=0, acknowledgement_batches=()),),
            ),
        ),
        forgotten_topics_data=(),
        **_member,
    ),
    _of(
        "ShareAcknowledge",
        (Op.READ, GROUP),
        (Op.READ, TOPIC),
        share_session_epoch=0,
        topics=(
            AcknowledgeTopic(
                topic_id=TOPIC_ID,
                partitions=(AcknowledgePartition(partition_index=0, acknowledgement_batches=()),),
            ),
        ),
        **_member,
    ),
    *(
        _of(name, (Op.CLUSTER_ACTION, CLUSTER), group_id="readers", topics=(topic,))
        for name, topic in STATE_TOPICS.items()
    ),
    _of(
        "DescribeShareGroupOffsets",
        (Op.DESCRIBE, GROUP),
        groups=(DescribeShareGroupOffsetsRequestGroup(group_id="readers", topics=None),),
    ),
    _of(
        "DescribeShareGroupOffsets",
        (Op.DESCRIBE, GROUP),
        (Op.DESCRIBE, TOPIC),
        groups=(
            DescribeShareGroupOffsetsRequestGroup(
                group_id="readers",
                topics=(DescribeShareGroupOffsetsRequestTopic(topic_name="orders", partitions=(0,)),),
            ),
        ),
    ),
    _of("AlterShareGroupOffsets", (Op.READ, GROUP), group_id="readers", topics=()),
    _of(
        "AlterShareGroupOffsets",
        (Op.READ, GROUP),
        (Op.READ, TOPIC),
        group_id="readers",
        topics=(
            AlterShareGroupOffsetsRequestTopic(
                topic_name="orders",
                partitions=(AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0),),
            ),
        ),
    ),
    _of(
        "DeleteShareGroupOffsets",
        (Op.DELETE, GROUP),
        (Op.READ, TOPIC),
        group_id="readers",
        topics=(DeleteShareGroupOffsetsRequestTopic(topic_name="orders"),),
    ),
    _of("InitProducerId", (Op.WRITE, TXN), transactional_id="payments", transaction_timeout_ms=1),
    _of("InitProducerId", (Op.IDEMPOTENT_WRITE, CLUSTER), transactional_id=None, transaction_timeout_ms=1),
    _of(
        "AddPartitionsToTxn",
        (Op.WRITE, TXN),
        (Op.WRITE, TOPIC),
        version=3,
        v3_and_below_transactional_id="payments",
        v3_and_below_topics=(AddPartitionsToTxnTopic(name="orders", partitions=(0,)),),
    ),
    _of("AddPartitionsToTxn", (Op.CLUSTER_ACTION, CLUSTER)),
    _of(
        "AddPartitionsToTxn",
        (Op.CLUSTER_ACTION, CLUSTER),
        transactions=(
            AddPartitionsToTxnTransaction(topics=(AddPartitionsToTxnTopic(name="orders", partitions=(0,)),), **_txn),
        ),
    ),
    _of("AddOffsetsToTxn", (Op.WRITE, TXN), (Op.READ, GROUP), group_id="readers", **_txn),
    _of("EndTxn", (Op.WRITE, TXN), committed=True, **_txn),
    _of(
        "WriteTxnMarkers",
        (Op.CLUSTER_ACTION, CLUSTER),
        markers=(
            WritableTxnMarker(
                producer_id=1,
                producer_epoch=0,
                transaction_result=False,
                topics=(WritableTxnMarkerTopic(name="orders", partition_indexes=(0,)),),
                coordinator_epoch=0,
            ),
        ),
    ),
    _of(
        "TxnOffsetCommit",
        (Op.WRITE, TXN),
        (Op.READ, GROUP),
        (Op.READ, TOPIC),
        group_id="readers",
        topics=(
            TxnOffsetCommitRequestTopic(
                name="orders",
                partitions=(
                    TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata=None),
                ),
            ),
        ),
        **_txn,
    ),
    _of("DescribeTransactions", (Op.DESCRIBE, TXN), transactional_ids=("payments",)),
    _of("ListTransactions", state_filters=(), producer_id_filters=()),
    *_configs(2, "orders", Op.DESCRIBE_CONFIGS, TOPIC),
    *_configs(2, "orders", Op.ALTER_CONFIGS, TOPIC),
    *_configs(4, "", Op.DESCRIBE_CONFIGS, CLUSTER),
    *_configs(4, "", Op.ALTER_CONFIGS, CLUSTER),
    *_configs(32, "readers", Op.DESCRIBE_CONFIGS, GROUP),
    *_configs(32, "readers", Op.ALTER_CONFIGS, GROUP),
    _of("ListConfigResources", (Op.DESCRIBE_CONFIGS, CLUSTER)),
    _of("DescribeLogDirs", (Op.DESCRIBE, CLUSTER), topics=None),
    _of("ElectLeaders", (Op.ALTER, CLUSTER), topic_partitions=None),
    _of(
        "ElectLeaders",
        (Op.ALTER, CLUSTER),
        topic_partitions=(TopicPartitions(topic="orders", partitions=(0,)),),
    ),
    _of("AlterPartitionReassignments", (Op.ALTER, CLUSTER), topics=()),
    _of(
        "AlterPartitionReassignments",
        (Op.ALTER, CLUSTER),
        topics=(ReassignableTopic(name="orders", partitions=(ReassignablePartition(partition_index=0),)),),
    ),
    _of("ListPartitionReassignments", (Op.DESCRIBE, CLUSTER)),
    _of("DescribeAcls", (Op.DESCRIBE, CLUSTER), **_filter),
    _of("CreateAcls", (Op.ALTER, CLUSTER), creations=(AclCreation(operation=3, permission_type=3, **_acl),)),
    _of("DeleteAcls", (Op.ALTER, CLUSTER), filters=(DeleteAclsFilter(**_filter),)),
    _of("DescribeUserScramCredentials", (Op.DESCRIBE, CLUSTER), users=None),
    _of("DescribeUserScramCredentials", (Op.DESCRIBE, CLUSTER), users=(UserName(name="ann"),)),
    _of("AlterUserScramCredentials", (Op.ALTER, CLUSTER), deletions=(), upsertions=()),
    _of(
        "AlterUserScramCredentials",
        (Op.ALTER, CLUSTER),
        deletions=(ScramCredentialDeletion(name="ann", mechanism=1),),
        upsertions=(
            ScramCredentialUpsertion(name="bob", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p" * 32),
        ),
    ),
    _of("CreateDelegationToken", renewers=(), max_lifetime_ms=-1),
    _of("RenewDelegationToken", hmac=b"hmac", renew_period_ms=-1),
    _of("ExpireDelegationToken", hmac=b"hmac", expiry_time_period_ms=-1),
    _of("DescribeDelegationToken", owners=None),
    _of("DescribeClientQuotas", (Op.DESCRIBE_CONFIGS, CLUSTER), components=(), strict=False),
    _of("AlterClientQuotas", (Op.ALTER_CONFIGS, CLUSTER), entries=(), validate_only=False),
    _of(
        "AlterClientQuotas",
        (Op.ALTER_CONFIGS, CLUSTER),
        entries=(
            EntryData(
                entity=(EntityData(entity_type="user", entity_name="ann"),),
                ops=(OpData(key="producer_byte_rate", value=1.0, remove=False),),
            ),
        ),
        validate_only=False,
    ),
)
