"""A broker without free file descriptors serves APIs that were not used before."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from tests.broker.raw_client import RawClient

from ottla.broker.requests.api_table import SERVED
from ottla.core.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.list_offsets import ListOffsetsRequest
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

from .serving import Serve

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.wire.declare import Request

ANY = 1
BROKER = 4
STANDARD_STREAMS = 3
ONE_PER_MODULE: list[Request] = [
    ProduceRequest(acks=1, timeout_ms=0, topic_data=()),
    FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=()),
    ListOffsetsRequest(replica_id=-1, topics=()),
    MetadataRequest(topics=()),
    OffsetFetchRequest(groups=()),
    ListGroupsRequest(),
    ListPartitionReassignmentsRequest(),
    ApiVersionsRequest(client_software_name="test", client_software_version="1"),
    CreateTopicsRequest(topics=()),
    DeleteTopicsRequest(topics=(), timeout_ms=0),
    DeleteRecordsRequest(topics=(), timeout_ms=0),
    DescribeLogDirsRequest(topics=()),
    DescribeClusterRequest(include_cluster_authorized_operations=False),
    DescribeTopicPartitionsRequest(topics=()),
    DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    ),
    DescribeUserScramCredentialsRequest(users=None),
    DescribeClientQuotasRequest(components=(), strict=False),
    SaslHandshakeRequest(mechanism="PLAIN"),
    EndTxnRequest(transactional_id="", producer_id=0, producer_epoch=0, committed=True),
    TxnOffsetCommitRequest(transactional_id="", group_id="", producer_id=0, producer_epoch=0, topics=()),
    ListTransactionsRequest(state_filters=(), producer_id_filters=()),
    ConsumerGroupDescribeRequest(group_ids=(), include_authorized_operations=False),
    ShareGroupDescribeRequest(group_ids=(), include_authorized_operations=False),
    ReadShareGroupStateRequest(group_id="", topics=()),
    DescribeDelegationTokenRequest(owners=None),
    ShareAcknowledgeRequest(group_id="", member_id="", share_session_epoch=0, topics=()),
    DescribeConfigsRequest(
        resources=(DescribeConfigsResource(resource_type=BROKER, resource_name="0", configuration_keys=None),)
    ),
]


def test_an_api_that_was_never_used_works_without_a_descriptor(tmp_path: Path) -> None:
    assert len(ONE_PER_MODULE) == len({served.handler().__module__ for served in SERVED.values()})
    with Serve(tmp_path) as serve, RawClient(serve.address) as client:
        # One turn of the broker's loop for each, in which it also imports a handler.
        for _ in range(2 * len(SERVED)):
            client.ask(ApiVersionsRequest(), 0)
        _, hard = resource.prlimit(serve.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(serve.process.pid, resource.RLIMIT_NOFILE, (STANDARD_STREAMS, hard))
        for request in ONE_PER_MODULE[:-1]:
            client.ask(request)
        [described] = client.ask(ONE_PER_MODULE[-1]).results  # type: ignore[attr-defined]
        assert described.error_code == ErrorCode.NONE
        assert {config.name for config in described.configs} > {"group.max.size", "log.dirs"}
        resource.prlimit(serve.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
        assert serve.terminate() == 0
        # Optional features are disabled; Kafka is served.
        assert [line for line in serve.output()[1].splitlines() if not line.startswith("ottla: no DMQP")] == []
