"""DescribeCluster (60): the cluster's id, controller and brokers."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    NullableString,
    Request,
    Response,
    Since,
    String,
)


class DescribeClusterBroker(Message, frozen=True, kw_only=True):
    broker_id: Int32
    host: String
    port: Int32
    rack: NullableString = None
    is_fenced: Annotated[Bool, Since(2)] = False


class DescribeClusterResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_CLUSTER

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
    endpoint_type: Annotated[Int8, Since(1)] = 1
    cluster_id: String
    controller_id: Int32 = -1
    brokers: tuple[DescribeClusterBroker, ...]
    cluster_authorized_operations: Int32 = -2147483648


class DescribeClusterRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_CLUSTER
    RESPONSE: ClassVar = DescribeClusterResponse

    include_cluster_authorized_operations: Bool
    endpoint_type: Annotated[Int8, Since(1)] = 1
    include_fenced_brokers: Annotated[Bool, Since(2)] = False
