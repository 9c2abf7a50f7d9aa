"""Errors, by how they are handled.

OttlaError
├── ApiError          a valid request that fails: the code is the response, the connection stays open
├── ProtocolError     the peer violated the protocol: close the connection
├── ConfigError       invalid configuration: do not start
└── DataDirError      the data folder cannot be used: do not start

Any other exception is a bug.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ottla.core.error_codes import ErrorCode as ErrorCode  # re-exported

LONGEST_MESSAGE: Final = 500


class OttlaError(Exception):
    """The base of all errors that are raised deliberately."""


class ApiError(OttlaError):
    """A valid request that fails with `code`."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __str__(self) -> str:
        # The message may contain a name of 30 kilobytes, and be repeated for each of 10,000 partitions.
        text = super().__str__()
        return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."


class ProtocolError(OttlaError):
    """The peer violated the protocol, so nothing it sends after this can be trusted: close the connection."""


class ConfigError(OttlaError):
    """An invalid setting; the message names it, its source and the valid values."""


class DataDirError(OttlaError):
    """A data folder that cannot be used; the message gives the reason, and nothing in the folder was changed."""


class CorruptMessage(ApiError):
    """An invalid record batch: wrong checksum, length, count or encoding."""

    code = ErrorCode.CORRUPT_MESSAGE


class InvalidRecord(ApiError):
    """An intact batch that violates a rule of the topic or of the format."""

    code = ErrorCode.INVALID_RECORD


class InvalidRecords(InvalidRecord):
    """Invalid records, with the index and the problem of each (KIP-467)."""

    def __init__(self, message: str, problems: tuple[tuple[int, str], ...]) -> None:
        super().__init__(message)
        self.problems = problems


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
    """A batch larger than segment.bytes."""

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
    """A disk error: full, failing, or offline after a failed fsync."""

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
    """The request is valid, but violates a policy of this broker or topic."""

    code = ErrorCode.POLICY_VIOLATION


class UnknownTopicId(ApiError):
    code = ErrorCode.UNKNOWN_TOPIC_ID


class InvalidRequest(ApiError):
    """The request is well-formed, but inconsistent or not supported."""

    code = ErrorCode.INVALID_REQUEST


class GroupIdNotFound(ApiError):
    code = ErrorCode.GROUP_ID_NOT_FOUND


class NonEmptyGroup(ApiError):
    code = ErrorCode.NON_EMPTY_GROUP


class InvalidRecordState(ApiError):
    """The record is not acquired by this member of a share group."""

    code = ErrorCode.INVALID_RECORD_STATE


class ShareSessionNotFound(ApiError):
    code = ErrorCode.SHARE_SESSION_NOT_FOUND


class InvalidShareSessionEpoch(ApiError):
    code = ErrorCode.INVALID_SHARE_SESSION_EPOCH


class ShareSessionLimitReached(ApiError):
    code = ErrorCode.SHARE_SESSION_LIMIT_REACHED


class ResourceNotFound(ApiError):
    """The group to delete does not exist."""

    code = ErrorCode.RESOURCE_NOT_FOUND


class LeaderNotAvailable(ApiError):
    """The partition has no leader yet; retry shortly."""

    code = ErrorCode.LEADER_NOT_AVAILABLE


class CoordinatorLoadInProgress(ApiError):
    """The coordinator is not ready yet; retry shortly."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class RequestTimedOut(ApiError):
    """The operation was started, but not completed within the timeout."""

    code = ErrorCode.REQUEST_TIMED_OUT


class NoReassignmentInProgress(ApiError):
    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class ElectionNotNeeded(ApiError):
    """The preferred leader is already the leader."""

    code = ErrorCode.ELECTION_NOT_NEEDED


class NotLeaderOrFollower(ApiError):
    """Another node leads this partition, or none does."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class NotEnoughReplicas(ApiError):
    """The ISR is smaller than min.insync.replicas; nothing was appended."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class NotEnoughReplicasAfterAppend(ApiError):
    """Appended, but the ISR then became smaller than min.insync.replicas."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class OffsetNotAvailable(ApiError):
    """A new leader, or a follower, does not know the high watermark yet."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


class FencedLeaderEpoch(ApiError):
    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(ApiError):
    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class InvalidConfig(ApiError):
    """An unknown config of a topic or broker, or an invalid value; the message lists valid ones."""

    code = ErrorCode.INVALID_CONFIG
