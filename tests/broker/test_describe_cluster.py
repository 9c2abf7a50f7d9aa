"""DescribeCluster (60) and authorized operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode
from ottla.wire import apis
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    import ottla

    from .raw_client import RawClient

BROKERS, CONTROLLERS = 1, 2
NOT_ASKED = -(1 << 31)
# As Apache Kafka 4.3 without an authorizer answers.
ON_CLUSTER = 8096
ON_TOPIC = 3576


@pytest.mark.parametrize("version", range(apis.DESCRIBE_CLUSTER.first, apis.DESCRIBE_CLUSTER.last + 1))
def test_every_version_lists_the_brokers(client: RawClient, broker: ottla.Broker, version: int) -> None:
    cluster = client.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), version)

    assert (cluster.error_code, cluster.error_message, cluster.endpoint_type) == (ErrorCode.NONE, None, BROKERS)
    assert cluster.cluster_id == broker.broker.cluster_id
    assert cluster.controller_id == 0
    [node] = cluster.brokers
    assert (node.broker_id, f"{node.host}:{node.port}", node.rack) == (0, broker.bootstrap_servers, None)
    assert not node.is_fenced
    assert cluster.cluster_authorized_operations == NOT_ASKED


def test_controllers_and_unknown_endpoints_are_refused(client: RawClient) -> None:
    def code_of(endpoint_type: int) -> int:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=endpoint_type)
        refused = client.ask(request)
        assert refused.error_message
        assert refused.brokers == ()
        return refused.error_code

    assert code_of(CONTROLLERS) == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert code_of(0) == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    assert code_of(9) == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def test_every_operation_is_authorized_without_an_authorizer(client: RawClient, topic: str) -> None:
    cluster = client.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    assert cluster.cluster_authorized_operations == ON_CLUSTER

    asked = MetadataRequest(
        topics=(MetadataRequestTopic(name=topic), MetadataRequestTopic(name="no-such")),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    told = client.ask(asked, version=10)
    assert told.cluster_authorized_operations == ON_CLUSTER
    assert [one.topic_authorized_operations for one in told.topics] == [ON_TOPIC, ON_TOPIC]


def test_authorized_operations_are_sent_only_on_request(client: RawClient, topic: str) -> None:
    told = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), version=10)

    assert told.cluster_authorized_operations == NOT_ASKED
    assert [one.topic_authorized_operations for one in told.topics] == [NOT_ASKED]
