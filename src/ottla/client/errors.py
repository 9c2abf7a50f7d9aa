"""What can go wrong for a client, by what its user can do about it.

ClientError
├── BrokerUnavailable       no answer came; it may be worth another try, or another broker
│   ├── ConnectFailed       nobody there, or not within the time allowed
│   │   └── NobodyListens   the machine is there, and refuses: no broker runs at this port
│   ├── NotKafka            somebody there who does not speak Kafka
│   ├── ConnectionLost      the broker went away with a request under way
│   └── RequestTimedOut     the broker is there and does not answer
├── AuthenticationFailed    the broker does not accept who we say we are
├── UnsupportedByBroker     the broker is too old, or too new, for this request
├── ClientClosed            used after it was closed
├── DeliveryFailed          a message could not be delivered in the time allowed
├── TransactionFailed       something of a transaction went wrong, and all of it has to be aborted
├── SerializationFailed     a key or value that its serializer cannot handle
└── BrokerError             the broker answered with an error; `code` says which
    ├── UnknownTopic, AuthorizationFailed, RecordTooLarge, OffsetOutOfRange
    └── CommitFailed, ProducerFenced
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode, OttlaError

if TYPE_CHECKING:
    from ottla.wire.apis import Api


class ClientError(OttlaError):
    """The root of every error the client raises on purpose."""

    @property
    def is_retriable(self) -> bool:
        """Whether the same call may succeed later, with nothing changed by the caller."""
        return False


class BrokerUnavailable(ClientError):
    """No answer came from the broker."""

    @property
    def is_retriable(self) -> bool:
        return True


class ConnectFailed(BrokerUnavailable):
    """Nobody there, or nobody who answers; the message says which addresses were tried and what came of each."""


class NobodyListens(ConnectFailed):
    """The machine answers that nothing runs at this port."""


class NotKafka(BrokerUnavailable):
    """What answers at this address does not speak the Kafka protocol; the message says what it looks like."""


class ConnectionLost(BrokerUnavailable):
    """The connection broke; what was under way may or may not have been done."""


class RequestTimedOut(BrokerUnavailable):
    """The broker did not answer in time; what was asked may or may not have been done."""


class AuthenticationFailed(ClientError):
    """The broker does not accept the credentials, or we do not accept the broker's."""


class UnsupportedByBroker(ClientError):
    """The broker does not serve this request in any version that is spoken here."""

    def __init__(self, api: Api, message: str) -> None:
        super().__init__(message)
        self.api = api


class ClientClosed(ClientError):
    def __init__(self, message: str = "the client is closed; make a new one") -> None:
        super().__init__(message)


class DeliveryFailed(ClientError):
    """Messages that were not acknowledged; the cause, if the broker named one, is `__cause__`."""


class TransactionFailed(ClientError):
    """The transaction can only be aborted, or was; what went wrong is `__cause__`."""


class SerializationFailed(ClientError):
    """A key or value that its serializer or deserializer cannot handle; the reason is `__cause__`."""


class BrokerError(ClientError):
    """The broker understood and refused."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_retriable(self) -> bool:
        return self.code.is_retriable


class UnknownTopic(BrokerError):
    """The topic or partition does not exist."""


class AuthorizationFailed(BrokerError):
    """This user may not do this."""


class RecordTooLarge(BrokerError):
    """A message larger than the topic or the client's buffer allows."""


class OffsetOutOfRange(BrokerError):
    """The partition does not hold this offset, or holds it no longer."""


class CommitFailed(BrokerError):
    """The group moved on without this member, which may no longer commit for it."""


class ProducerFenced(BrokerError):
    """Another producer with the same id has taken over."""


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
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create it first, or look at its name",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "a topic's name is 1 to 249 letters, digits, dots, dashes and underscores",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "give this user access to the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "give this user access to the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "give this user access to the cluster",
    ErrorCode.MESSAGE_TOO_LARGE: "send less at once, or raise the topic's max.message.bytes",
    ErrorCode.RECORD_LIST_TOO_LARGE: "send less at once, or raise the topic's segment.bytes",
    ErrorCode.OFFSET_OUT_OF_RANGE: "seek to an offset that exists, or set auto_offset_reset",
    ErrorCode.ILLEGAL_GENERATION: "poll more often, or raise max_poll_interval_ms and session_timeout_ms",
    ErrorCode.UNKNOWN_MEMBER_ID: "poll more often, or raise max_poll_interval_ms and session_timeout_ms",
    ErrorCode.FENCED_INSTANCE_ID: "give each consumer a group_instance_id of its own",
    ErrorCode.PRODUCER_FENCED: "close this producer; another has taken its place",
    ErrorCode.INVALID_PRODUCER_EPOCH: "close this producer; another has taken its place",
    ErrorCode.NOT_ENOUGH_REPLICAS: "too few replicas of the partition are alive; bring brokers back",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "too few replicas of the partition are alive; bring brokers back",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader now; bring its brokers back",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's disk failed; see its log",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "use another compression",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "look at the username and password",
}


def error_code(number: int) -> ErrorCode:
    """The code by this number; one that is newer than this client is an unknown error of the server."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def broker_error(code: int, about: str, broker_says: str | None = None) -> BrokerError:
    """The error for a code that a broker answered with: what it was about, what it means, and what to do."""
    known = error_code(code)
    name = known.name if known == code else f"error {code}"
    message = f"{about}: {name}" if broker_says is None else f"{about}: {name}, {broker_says}"
    if advice := _ADVICE.get(known):
        message = f"{message} ({advice})"
    return _SPECIAL.get(known, BrokerError)(known, message)


def raise_for(code: int, about: str, broker_says: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise broker_error(code, about, broker_says)
