"""What can go wrong, by who has to act on it.

    OttlaError
    ├── ApiError          understood and refused: the code is the answer, the connection goes on
    ├── ProtocolError     the peer broke the format: hang up
    ├── ConfigError       the operator asked for something that cannot be: refuse to start
    └── DataDirError      the data folder cannot be used: refuse to start

Anything else that is raised is a bug of ours.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ottla.core.error_codes import ErrorCode as ErrorCode  # whoever answers with one looks for it here

LONGEST_MESSAGE: Final = 500


class OttlaError(Exception):
    """The root of every error this package raises on purpose."""


class ApiError(OttlaError):
    """Understood and refused: `code` is the answer."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __str__(self) -> str:
        # It may quote a name of 30 kilobytes, and be the answer for each of 10,000 partitions.
        text = super().__str__()
        return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."


class ProtocolError(OttlaError):
    """The peer broke the format, so nothing it sends after this can be trusted: hang up."""


class ConfigError(OttlaError):
    """A setting that cannot be used; the message says which, where it came from and what would be valid."""


class DataDirError(OttlaError):
    """A data folder that cannot be used; the message says why and nothing in the folder was changed."""


class CorruptMessage(ApiError):
    """Bytes that claim to be a record batch and are not: a wrong checksum, length, count or encoding."""

    code = ErrorCode.CORRUPT_MESSAGE


class InvalidRecord(ApiError):
    """A batch that is intact but breaks a rule of the topic or of the format."""

    code = ErrorCode.INVALID_RECORD


class InvalidTimestamp(ApiError):
    code = ErrorCode.INVALID_TIMESTAMP


class UnsupportedForMessageFormat(ApiError):
    """Message format v0 or v1, which Kafka 4 no longer accepts either."""

    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class UnsupportedCompressionType(ApiError):
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class MessageTooLarge(ApiError):
    code = ErrorCode.MESSAGE_TOO_LARGE


class RecordListTooLarge(ApiError):
    """A batch that is larger than a whole segment may be."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE


class OffsetOutOfRange(ApiError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE


class DuplicateSequenceNumber(ApiError):
    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


class OutOfOrderSequenceNumber(ApiError):
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpoch(ApiError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnState(ApiError):
    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFenced(ApiError):
    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class StorageError(ApiError):
    """The disk refused: full, failing, or taken offline after a failed fsync."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class TopicAlreadyExists(ApiError):
    code = ErrorCode.TOPIC_ALREADY_EXISTS


class UnknownTopicOrPartition(ApiError):
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class InvalidTopic(ApiError):
    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class InvalidPartitions(ApiError):
    code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactor(ApiError):
    code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(ApiError):
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class PolicyViolation(ApiError):
    """Possible, and yet against a rule of this broker or topic."""

    code = ErrorCode.POLICY_VIOLATION


class UnknownTopicId(ApiError):
    code = ErrorCode.UNKNOWN_TOPIC_ID


class InvalidRequest(ApiError):
    """Well-formed, and yet asks for something that cannot be."""

    code = ErrorCode.INVALID_REQUEST


class GroupIdNotFound(ApiError):
    code = ErrorCode.GROUP_ID_NOT_FOUND


class NonEmptyGroup(ApiError):
    code = ErrorCode.NON_EMPTY_GROUP


class InvalidRecordState(ApiError):
    """Not a record that this member of a share group has acquired."""

    code = ErrorCode.INVALID_RECORD_STATE


class ShareSessionNotFound(ApiError):
    code = ErrorCode.SHARE_SESSION_NOT_FOUND


class InvalidShareSessionEpoch(ApiError):
    code = ErrorCode.INVALID_SHARE_SESSION_EPOCH


class ShareSessionLimitReached(ApiError):
    code = ErrorCode.SHARE_SESSION_LIMIT_REACHED


class ResourceNotFound(ApiError):
    """Asked to delete what is not there."""

    code = ErrorCode.RESOURCE_NOT_FOUND


class LeaderNotAvailable(ApiError):
    """Nobody leads it yet; that may be a matter of moments."""

    code = ErrorCode.LEADER_NOT_AVAILABLE


class CoordinatorLoadInProgress(ApiError):
    """Not ready yet; the same may be asked again in a moment."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class RequestTimedOut(ApiError):
    """Begun, and not seen to end in the time that was allowed."""

    code = ErrorCode.REQUEST_TIMED_OUT


class NoReassignmentInProgress(ApiError):
    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class ElectionNotNeeded(ApiError):
    """The one who would be elected leads already."""

    code = ErrorCode.ELECTION_NOT_NEEDED


class NotLeaderOrFollower(ApiError):
    """Another node leads this partition, or none does."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class NotEnoughReplicas(ApiError):
    """Fewer are in sync than min.insync.replicas asks for; nothing was appended."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class NotEnoughReplicasAfterAppend(ApiError):
    """Appended, and then there were too few."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class OffsetNotAvailable(ApiError):
    """A new leader, or a follower, cannot say yet what consumers may read."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


class FencedLeaderEpoch(ApiError):
    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(ApiError):
    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class InvalidConfig(ApiError):
    """A setting of a topic or broker that does not exist or cannot have this value; the message says what can."""

    code = ErrorCode.INVALID_CONFIG
