"""DescribeCluster (60). Like Kafka's brokers, it returns a broker as the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.requests import authorized_operations
from ottla.core.errors import ErrorCode
from ottla.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def describe_cluster(broker: Broker, request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        return _refusal(request.endpoint_type)
    operations = authorized_operations.NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = authorized_operations.ON_CLUSTER
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        endpoint_type=_BROKERS,
        cluster_id=broker.cluster_id,
        controller_id=broker.topology.controller_id,
        brokers=tuple(
            DescribeClusterBroker(broker_id=each.id, host=each.host, port=each.port, rack=each.rack)
            for each in broker.topology.brokers(context.connection)
        ),
        cluster_authorized_operations=operations,
    )


def _refusal(endpoint_type: int) -> DescribeClusterResponse:
    """Kafka's controllers have separate endpoints (KIP-919), which Ottla does not have."""
    if endpoint_type == _CONTROLLERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    else:
        code, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}"
    return DescribeClusterResponse(error_code=code, error_message=message, cluster_id="", brokers=())
