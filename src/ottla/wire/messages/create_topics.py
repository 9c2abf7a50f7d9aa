"""CreateTopics (19): create topics, or with `validate_only` validate the request."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    NO_UUID,
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
    Tag,
    Uuid,
)


class CreatableTopicConfigs(Message, frozen=True, kw_only=True):
    name: String
    value: NullableString
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool


class CreatableTopicResult(Message, frozen=True, kw_only=True):
    name: String
    topic_id: Annotated[Uuid, Since(7)] = NO_UUID
    error_code: Int16
    error_message: NullableString
    topic_config_error_code: Annotated[Int16, Tag(0, since=5)] = 0
    num_partitions: Annotated[Int32, Since(5)] = -1
    replication_factor: Annotated[Int16, Since(5)] = -1
    configs: Annotated[tuple[CreatableTopicConfigs, ...] | None, Since(5)] = None


class CreateTopicsResponse(Response, frozen=True, kw_only=True):
    API = apis.CREATE_TOPICS

    throttle_time_ms: Int32 = 0
    topics: tuple[CreatableTopicResult, ...]


class CreatableReplicaAssignment(Message, frozen=True, kw_only=True):
    partition_index: Int32
    broker_ids: tuple[Int32, ...]


class CreatableTopicConfig(Message, frozen=True, kw_only=True):
    name: String
    value: NullableString


class CreatableTopic(Message, frozen=True, kw_only=True):
    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[CreatableReplicaAssignment, ...]
    configs: tuple[CreatableTopicConfig, ...]


class CreateTopicsRequest(Request, frozen=True, kw_only=True):
    API = apis.CREATE_TOPICS
    RESPONSE: ClassVar = CreateTopicsResponse

    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60000
    validate_only: Bool = False
