"""Metadata (3): brokers, topics, and partition leaders.

`topics=None` means all topics; in version 0, which has no null, an empty array does.
"""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    NO_UUID,
    Bool,
    Int16,
    Int32,
    Message,
    NullableSince,
    NullableString,
    Request,
    Response,
    Since,
    String,
    Until,
    Uuid,
)


class MetadataResponseBroker(Message, frozen=True, kw_only=True):
    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[NullableString, Since(1)] = None


class MetadataResponsePartition(Message, frozen=True, kw_only=True):
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Annotated[Int32, Since(7)] = -1
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    offline_replicas: Annotated[tuple[Int32, ...], Since(5)] = ()


class MetadataResponseTopic(Message, frozen=True, kw_only=True):
    error_code: Int16
    name: Annotated[NullableString, NullableSince(12)]
    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    is_internal: Annotated[Bool, Since(1)] = False
    partitions: tuple[MetadataResponsePartition, ...]
    topic_authorized_operations: Annotated[Int32, Since(8)] = -2147483648


class MetadataResponse(Response, frozen=True, kw_only=True):
    API = apis.METADATA

    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    brokers: tuple[MetadataResponseBroker, ...]
    cluster_id: Annotated[NullableString, Since(2)] = None
    controller_id: Annotated[Int32, Since(1)] = -1
    topics: tuple[MetadataResponseTopic, ...]
    cluster_authorized_operations: Annotated[Int32, Since(8), Until(10)] = -2147483648
    error_code: Annotated[Int16, Since(13)] = 0


class MetadataRequestTopic(Message, frozen=True, kw_only=True):
    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    name: Annotated[NullableString, NullableSince(10)]


class MetadataRequest(Request, frozen=True, kw_only=True):
    API = apis.METADATA
    RESPONSE: ClassVar = MetadataResponse

    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, NullableSince(1)]
    allow_auto_topic_creation: Annotated[Bool, Since(4)] = True
    include_cluster_authorized_operations: Annotated[Bool, Since(8), Until(10)] = False
    include_topic_authorized_operations: Annotated[Bool, Since(8)] = False
