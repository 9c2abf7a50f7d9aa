"""The client's errors, by what the user can do about them.

ClientError
├── BrokerUnavailable       no response; retry, or try another broker
│   ├── ConnectFailed       connecting failed or timed out
│   │   └── ConnectionRefused   no process listens on the port
│   ├── NotKafka            the server does not speak the Kafka protocol
│   ├── ConnectionLost      the connection broke with a request in flight
│   └── RequestTimedOut     the broker did not respond in time
├── AuthenticationFailed    the credentials, or the broker's certificate, were rejected
├── UnsupportedByBroker     the broker does not support this request
├── ClientClosed            used after it was closed
├── DeliveryFailed          a message was not delivered in time
├── TransactionFailed       the transaction failed and must be aborted
├── SerializationFailed     a serializer or deserializer rejected a key or value
└── BrokerError             the broker returned an error; see `code`
    ├── UnknownTopic, AuthorizationFailed, RecordTooLarge, OffsetOutOfRange
    └── CommitFailed, ProducerFenced
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode, OttlaError

if TYPE_CHECKING:
    from ottla.wire.apis import Api


class ClientError(OttlaError):
    """The base of all errors raised by the client."""

    @property
    def is_retriable(self) -> bool:
        """Whether the same call may succeed later."""
        return False


class BrokerUnavailable(ClientError):
    """No response from the broker."""

    @property
    def is_retriable(self) -> bool:
        return True


class ConnectFailed(BrokerUnavailable):
    """Connecting failed; the message lists the addresses tried and their errors."""


class ConnectionRefused(ConnectFailed):
    """Connection refused: no process listens on the port."""


NobodyListens = ConnectionRefused
"""The earlier name."""


class NotKafka(BrokerUnavailable):
    """The server does not speak the Kafka protocol; the message says what it looks like."""


class ConnectionLost(BrokerUnavailable):
    """The connection broke; requests in flight may or may not have been executed."""


class RequestTimedOut(BrokerUnavailable):
    """The broker did not respond in time; the request may or may not have been executed."""


class AuthenticationFailed(ClientError):
    """The broker rejected the credentials, or the client rejected the broker's."""


class UnsupportedByBroker(ClientError):
    """The broker does not support this API in any version known to the client."""

    def __init__(self, api: Api, message: str) -> None:
        super().__init__(message)
        self.api = api


class ClientClosed(ClientError):
    def __init__(self, message: str = "the client is closed; create a new one") -> None:
        super().__init__(message)


class DeliveryFailed(ClientError):
    """Messages that were not acknowledged; the broker's error, if any, is `__cause__`."""


class TransactionFailed(ClientError):
    """The transaction can only be aborted, or was aborted; the cause is `__cause__`."""


class SerializationFailed(ClientError):
    """A serializer or deserializer rejected a key or value; the cause is `__cause__`."""


class BrokerError(ClientError):
    """The broker returned an error."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_retriable(self) -> bool:
        return self.code.is_retriable


class UnknownTopic(BrokerError):
    """The topic or partition does not exist."""


class AuthorizationFailed(BrokerError):
    """The user lacks a permission."""


class RecordTooLarge(BrokerError):
    """A message larger than the topic or the client's buffer allows."""


class OffsetOutOfRange(BrokerError):
    """The offset is out of range."""


class CommitFailed(BrokerError):
    """The member was removed from the group, or the partition was reassigned."""


class ProducerFenced(BrokerError):
    """Another producer with the same transactional id has taken over."""


_SPECIAL: Final[dict[ErrorCode, type[BrokerError]]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopic,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopic,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthorizationFailed,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthorizationFailed,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthorizationFailed,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AuthorizationFailed,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: AuthorizationFailed,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLarge,
    ErrorCode.RECORD_LIST_TOO_LARGE: RecordTooLarge,
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRange,
    ErrorCode.ILLEGAL_GENERATION: CommitFailed,
    ErrorCode.UNKNOWN_MEMBER_ID: CommitFailed,
    ErrorCode.FENCED_INSTANCE_ID: CommitFailed,
    ErrorCode.INVALID_PRODUCER_EPOCH: ProducerFenced,
    ErrorCode.PRODUCER_FENCED: ProducerFenced,
}

_ADVICE: Final[dict[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create it first, or check its name",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "a topic name has 1 to 249 letters, digits, dots, dashes and underscores",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "grant the user access to the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "grant the user access to the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "grant the user access to the cluster",
    ErrorCode.MESSAGE_TOO_LARGE: "send smaller batches, or raise the topic's max.message.bytes",
    ErrorCode.RECORD_LIST_TOO_LARGE: "send smaller batches, or raise the topic's segment.bytes",
    ErrorCode.OFFSET_OUT_OF_RANGE: "seek to a valid offset, or set auto_offset_reset",
    ErrorCode.ILLEGAL_GENERATION: "poll more often, or raise max_poll_interval_ms and session_timeout_ms",
    ErrorCode.UNKNOWN_MEMBER_ID: "poll more often, or raise max_poll_interval_ms and session_timeout_ms",
    ErrorCode.FENCED_INSTANCE_ID: "give each consumer a unique group_instance_id",
    ErrorCode.PRODUCER_FENCED: "close this producer; another one has taken over",
    ErrorCode.INVALID_PRODUCER_EPOCH: "close this producer; another one has taken over",
    ErrorCode.NOT_ENOUGH_REPLICAS: "the ISR is smaller than min.insync.replicas; restart failed brokers",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "the ISR is smaller than min.insync.replicas; restart failed brokers",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader; restart its brokers",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's disk failed; see its log",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "use another compression",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "check the username and password",
}


def error_code(number: int) -> ErrorCode:
    """The error code of this number; UNKNOWN_SERVER_ERROR for codes newer than this client."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def broker_error(code: int, about: str, broker_says: str | None = None) -> BrokerError:
    """The error for a broker's error code: what it concerns, what it means, and what to do."""
    known = error_code(code)
    name = known.name if known == code else f"error {code}"
    message = f"{about}: {name}" if broker_says is None else f"{about}: {name}, {broker_says}"
    if advice := _ADVICE.get(known):
        message = f"{message} ({advice})"
    return _SPECIAL.get(known, BrokerError)(known, message)


def raise_for(code: int, about: str, broker_says: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise broker_error(code, about, broker_says)
