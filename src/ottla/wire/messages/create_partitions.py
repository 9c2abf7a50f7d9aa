"""CreatePartitions (37): add partitions to topics."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int16, Int32, Message, NullableString, Request, Response, String


class CreatePartitionsTopicResult(Message, frozen=True, kw_only=True):
    name: String
    error_code: Int16
    error_message: NullableString = None


class CreatePartitionsResponse(Response, frozen=True, kw_only=True):
    API = apis.CREATE_PARTITIONS

    throttle_time_ms: Int32 = 0
    results: tuple[CreatePartitionsTopicResult, ...]


class CreatePartitionsAssignment(Message, frozen=True, kw_only=True):
    broker_ids: tuple[Int32, ...]


class CreatePartitionsTopic(Message, frozen=True, kw_only=True):
    name: String
    count: Int32
    assignments: tuple[CreatePartitionsAssignment, ...] | None


class CreatePartitionsRequest(Request, frozen=True, kw_only=True):
    API = apis.CREATE_PARTITIONS
    RESPONSE: ClassVar = CreatePartitionsResponse

    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: Int32
    validate_only: Bool
