"""ElectLeaders (43): elect partition leaders."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int8, Int16, Int32, Message, NullableString, Request, Response, Since, String


class PartitionResult(Message, frozen=True, kw_only=True):
    partition_id: Int32
    error_code: Int16
    error_message: NullableString


class ReplicaElectionResult(Message, frozen=True, kw_only=True):
    topic: String
    partition_result: tuple[PartitionResult, ...]


class ElectLeadersResponse(Response, frozen=True, kw_only=True):
    API = apis.ELECT_LEADERS

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(1)] = 0
    replica_election_results: tuple[ReplicaElectionResult, ...]


class TopicPartitions(Message, frozen=True, kw_only=True):
    topic: String
    partitions: tuple[Int32, ...]


class ElectLeadersRequest(Request, frozen=True, kw_only=True):
    API = apis.ELECT_LEADERS
    RESPONSE: ClassVar = ElectLeadersResponse

    election_type: Annotated[Int8, Since(1)] = 0
    topic_partitions: tuple[TopicPartitions, ...] | None
    timeout_ms: Int32 = 60000
