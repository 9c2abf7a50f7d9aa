"""Configuration of a client, its producers and its consumers. Times are in milliseconds.

Many names and defaults come from kafka-d, whose design this client follows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.security import Security

Acks: TypeAlias = Literal["all", 0, 1]
CompressionName: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
ResetPolicy: TypeAlias = Literal["latest", "earliest", "none"]
IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]
AssignorName: TypeAlias = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]
Partitioner: TypeAlias = "Callable[[bytes | None, int], int]"
"""Maps the serialized key and the number of partitions to a partition."""

_LEVELS: Final[dict[str, tuple[int, int]]] = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (1, 22)}
_MOST_IN_FLIGHT_IN_ORDER: Final = 5
"""The number of batches per partition that a broker remembers of an idempotent producer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    client_id: str = field(default_factory=lambda: f"ottla-{os.getpid()}")
    """The client id in broker logs and quotas."""
    request_timeout_ms: int = 30_000
    """Fail a request that is not answered within this time."""
    connect_timeout_ms: int = 10_000
    """Limit for connecting to a broker, including TLS and SASL."""
    metadata_max_age_ms: int = 300_000
    """Refresh metadata at least this often."""
    metadata_refresh_retry_count: int = 3
    """Rounds over all brokers before a metadata refresh fails; 0 means no limit."""
    metadata_refresh_retry_ms: int = 1000
    """Delay between two rounds over all brokers."""
    leader_election_retry_count: int = 3
    """How many times to wait leader_election_retry_ms for a partition to get a leader; 0 means no limit."""
    leader_election_retry_ms: int = 1000
    """Maximum delay between two metadata requests for a topic without a leader; also how long it may be unknown."""
    stale_metadata_retry_ms: int = 200
    """Maximum delay between two metadata requests after a leader fails or refuses a request."""
    backoff_first_ms: int = 50
    """Delay after the first failure; doubles with each further failure."""
    backoff_max_ms: int = 1000
    """Maximum delay between two attempts."""
    fetcher_bundle_max_wait_ms: int = 100
    """How long a fetch request may wait for further partitions to become ready."""
    fetcher_bundle_min_requests: int = 10
    """Send a fetch request at once when this many partitions, or all of them, are ready."""
    pusher_bundle_max_wait_ms: int = 100
    """How long a produce request may wait for further partitions to become ready."""
    pusher_bundle_min_requests: int = 10
    """Send a produce request at once when this many partitions, or all of them, are ready."""
    serializer_chunk_bytes: int = 4096
    """Requests up to this size, or 16 KiB, are assembled and written at once; data of larger requests is not copied."""
    deserializer_chunk_bytes: int = 4096
    """How much to read from a socket at once; fetch connections read more."""
    security: Security | None = None
    """TLS and SASL; None for plaintext without authentication."""

    def __post_init__(self) -> None:
        _check_at_least(self, 1, "request_timeout_ms", "connect_timeout_ms", "metadata_max_age_ms")
        _check_at_least(self, 0, "metadata_refresh_retry_count", "leader_election_retry_count")
        _check_at_least(self, 1, "metadata_refresh_retry_ms", "leader_election_retry_ms", "backoff_first_ms")
        _check_at_least(self, 1, "stale_metadata_retry_ms")
        _check_at_least(self, self.backoff_first_ms, "backoff_max_ms")
        _check_at_least(self, 0, "fetcher_bundle_max_wait_ms", "pusher_bundle_max_wait_ms")
        _check_at_least(self, 1, "fetcher_bundle_min_requests", "pusher_bundle_min_requests")
        _check_at_least(self, 256, "serializer_chunk_bytes", "deserializer_chunk_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    acks: Acks = "all"
    """Acknowledgements required: from the full ISR ("all"), from the leader (1) or none (0)."""
    idempotence: bool = True
    """Number the batches so that retries are not stored twice. Requires acks="all"."""
    transactional_id: str | None = None
    """Send in transactions under this id, used by one producer at a time; None for no transactions."""
    transaction_timeout_ms: int = 60_000
    """The coordinator aborts a transaction that is open for longer."""
    compression: CompressionName = "none"
    """The compression type of batches."""
    compression_level: int | None = None
    """Compression level for gzip, lz4 and zstd; None for the codec's default."""
    producer_batch_timeout_ms: int = 100
    """Send a batch this long after its first message, full or not."""
    producer_max_bytes: int = 1 << 20
    """Maximum size of a batch, and of a message."""
    producer_queue_buffers: int = 2
    """Maximum number of batches per partition being filled, queued or in flight; beyond that, sending waits."""
    produce_request_timeout_ms: int = 1000
    """How long the broker may wait for its replicas."""
    delivery_timeout_ms: int = 120_000
    """Fail a message that is not acknowledged within this time, including all retries."""
    max_in_flight: int = 5
    """Maximum number of requests in flight per broker, and with idempotence of batches per partition."""
    partitioner: Partitioner | None = None
    """Chooses a message's partition; None for Kafka's default: by key, or sticky without a key."""

    def __post_init__(self) -> None:
        _check_one_of(self, "acks", ("all", 0, 1))
        _check_one_of(self, "compression", ("none", "gzip", "snappy", "lz4", "zstd"))
        _check_at_least(self, 0, "producer_batch_timeout_ms")
        _check_at_least(self, 1024, "producer_max_bytes")
        _check_at_least(self, 2, "producer_queue_buffers")
        _check_at_least(self, 1, "produce_request_timeout_ms", "delivery_timeout_ms", "max_in_flight")
        _check_at_least(self, 1, "transaction_timeout_ms")
        if self.transactional_id is not None and not (self.transactional_id and self.idempotence):
            raise ConfigError("transactional_id must not be empty, and needs idempotence")
        self._check_level()
        if self.idempotence and self.acks != "all":
            raise ConfigError(f'acks must be "all" with idempotence, got {self.acks!r}; or set idempotence=False')
        if self.idempotence and self.max_in_flight > _MOST_IN_FLIGHT_IN_ORDER:
            raise ConfigError(
                f"max_in_flight must be at most {_MOST_IN_FLIGHT_IN_ORDER} with idempotence, got {self.max_in_flight}"
            )

    def _check_level(self) -> None:
        if self.compression_level is None:
            return
        levels = _LEVELS.get(self.compression)
        if levels is None:
            raise ConfigError(
                f"compression_level must be None with compression={self.compression!r} (it has no levels)"
            )
        low, high = levels
        if not low <= self.compression_level <= high:
            raise ConfigError(
                f"compression_level must be between {low} and {high} with {self.compression}, "
                f"got {self.compression_level}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    group: str | None = None
    """The consumer group; None to read without a group."""
    group_instance_id: str | None = None
    """Static member name: a restart within session_timeout_ms moves no partitions."""
    auto_offset_reset: ResetPolicy = "latest"
    """Where to start without a committed offset or when the offset is out of range; "none" raises OffsetOutOfRange."""
    consumer_max_wait_ms: int = 100
    """How long the broker may wait for consumer_min_bytes to arrive."""
    consumer_min_bytes: int = 1
    """The broker answers as soon as it has this much data."""
    consumer_max_bytes: int = 1 << 20
    """Maximum size of a fetch per partition."""
    consumer_queue_buffers: int = 2
    """Maximum number of fetched buffers per partition; beyond that, fetching pauses."""
    isolation_level: IsolationLevel = "read_uncommitted"
    """Whether to deliver messages of open and aborted transactions."""
    check_crcs: bool = True
    """Verify the checksums of fetched batches."""
    auto_commit: bool = True
    """Commit delivered messages every auto_commit_interval_ms and when a partition is revoked."""
    auto_commit_interval_ms: int = 5000
    """The interval of automatic commits."""
    session_timeout_ms: int = 45_000
    """The group removes a member that sends no heartbeat for this long."""
    heartbeat_interval_ms: int = 3000
    """The interval of heartbeats."""
    max_poll_interval_ms: int = 300_000
    """A member that does not poll for this long leaves the group."""
    assignors: tuple[AssignorName, ...] = ("range", "cooperative-sticky")
    """Supported partition assignors, preferred first; all members must have one in common."""
    rack: str = ""
    """The rack of this consumer, to fetch from the closest replica."""
    ordered: bool = False
    """Deliver the messages of all partitions as one stream, in timestamp order."""

    def __post_init__(self) -> None:
        _check_one_of(self, "auto_offset_reset", ("latest", "earliest", "none"))
        _check_one_of(self, "isolation_level", ("read_uncommitted", "read_committed"))
        _check_at_least(self, 0, "consumer_max_wait_ms", "consumer_min_bytes")
        _check_at_least(self, 1, "consumer_max_bytes", "auto_commit_interval_ms", "max_poll_interval_ms")
        _check_at_least(self, 2, "consumer_queue_buffers")
        _check_at_least(self, 1, "session_timeout_ms", "heartbeat_interval_ms")
        if self.group is not None and not self.group:
            raise ConfigError("group must not be empty; leave it out to read without a group")
        if self.group_instance_id is not None and self.group is None:
            raise ConfigError("group_instance_id needs a group")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat_interval_ms must be less than session_timeout_ms ({self.session_timeout_ms}), "
                f"got {self.heartbeat_interval_ms}"
            )
        _check_assignors(self.assignors)


_ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")


def _check_assignors(assignors: tuple[str, ...]) -> None:
    if not assignors:
        raise ConfigError(f"assignors must name at least one of {', '.join(_ASSIGNORS)}")
    for name in assignors:
        if name not in _ASSIGNORS:
            raise ConfigError(f"assignors must be of {', '.join(_ASSIGNORS)}, got {name!r}")


def _check_at_least(config: object, least: int, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _check_one_of(config: object, name: str, allowed: tuple[object, ...]) -> None:
    value = getattr(config, name)
    if isinstance(value, bool) or value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
