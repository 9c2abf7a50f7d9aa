"""What can be set about a client, its producers and its consumers. Times are in milliseconds.

Many of the names and defaults are those of kafka-d, whose design this client follows.
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
"""Given the serialized key and the number of partitions: which one."""

_LEVELS: Final[dict[str, tuple[int, int]]] = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (1, 22)}
_MOST_IN_FLIGHT_IN_ORDER: Final = 5
"""A broker remembers so many batches of an idempotent producer, per partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    client_id: str = field(default_factory=lambda: f"ottla-{os.getpid()}")
    """What brokers call this client in their logs and quotas."""
    request_timeout_ms: int = 30_000
    """A request that is not answered within this time fails."""
    connect_timeout_ms: int = 10_000
    """A broker that is not connected to within this time, with TLS and SASL, is unreachable."""
    metadata_max_age_ms: int = 300_000
    """Ask about the brokers and topics anew at least this often."""
    metadata_refresh_retry_count: int = 3
    """Ask all brokers this many times before giving up; 0 for ever."""
    metadata_refresh_retry_ms: int = 1000
    """The pause between two rounds over all brokers."""
    leader_election_retry_count: int = 3
    """Wait this many times leader_election_retry_ms for a topic to have a leader; 0 for ever."""
    leader_election_retry_ms: int = 1000
    """The longest pause between two questions about a topic that has no leader; also how long it may be unknown."""
    stale_metadata_retry_ms: int = 200
    """The longest pause between two questions about who leads, once the one who did fails or refuses."""
    backoff_first_ms: int = 50
    """The pause after a first failure; it doubles with each further one."""
    backoff_max_ms: int = 1000
    """The longest pause between two attempts."""
    fetcher_bundle_max_wait_ms: int = 100
    """Wait this long after the first for more partitions to put into a fetch request."""
    fetcher_bundle_min_requests: int = 10
    """Send a fetch request at once when so many partitions are ready, or all there are."""
    pusher_bundle_max_wait_ms: int = 100
    """Wait this long after the first for more partitions to put into a produce request."""
    pusher_bundle_min_requests: int = 10
    """Send a produce request at once when so many partitions are ready, or all there are."""
    serializer_chunk_bytes: int = 4096
    """A request is put together and written at once up to this size, or 16 KiB; data of larger ones is not copied."""
    deserializer_chunk_bytes: int = 4096
    """How much is read from a socket at once; connections that fetch read more, or they would be slow."""
    security: Security | None = None
    """TLS and SASL; None for neither."""

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
    """Who must have a message before it counts as delivered: all replicas in sync, the leader (1), or nobody (0)."""
    idempotence: bool = True
    """Number the batches, so that one that is sent again is not stored twice. Needs acks="all"."""
    transactional_id: str | None = None
    """Send in transactions under this name, of which one producer at a time may make use; None to send without."""
    transaction_timeout_ms: int = 60_000
    """A transaction that is not ended within this time is aborted by its coordinator."""
    compression: CompressionName = "none"
    """What batches are compressed with."""
    compression_level: int | None = None
    """How hard gzip, lz4 or zstd try; None for each one's own default."""
    producer_batch_timeout_ms: int = 100
    """Send a batch this long after its first message, full or not."""
    producer_max_bytes: int = 1 << 20
    """Send a batch when it is this large; no message may be larger."""
    producer_queue_buffers: int = 2
    """How many batches of a partition may be filled, waiting or under way; then sending waits too."""
    produce_request_timeout_ms: int = 1000
    """How long the broker may wait for its replicas."""
    delivery_timeout_ms: int = 120_000
    """A message that is not acknowledged within this time, with all attempts, is reported as failed."""
    max_in_flight: int = 5
    """How many requests may be under way to one broker, and with idempotence batches of one partition."""
    partitioner: Partitioner | None = None
    """Which partition a message goes to; None for Kafka's rule: by its key, or a batch at a time without one."""

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
            raise ConfigError(f"compression_level must be None with compression={self.compression!r}, which has none")
        low, high = levels
        if not low <= self.compression_level <= high:
            raise ConfigError(
                f"compression_level must be between {low} and {high} with {self.compression}, "
                f"got {self.compression_level}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    group: str | None = None
    """The consumer group to be a member of; None to read alone."""
    group_instance_id: str | None = None
    """A name for this member that outlives it: a restart within session_timeout_ms moves no partitions."""
    auto_offset_reset: ResetPolicy = "latest"
    """Where to begin when nothing is committed, or the offset is gone; "none" raises OffsetOutOfRange."""
    consumer_max_wait_ms: int = 100
    """How long a broker may wait for consumer_min_bytes to arrive."""
    consumer_min_bytes: int = 1
    """A broker answers at once when it has this much."""
    consumer_max_bytes: int = 1 << 20
    """How much to fetch of a partition at once."""
    consumer_queue_buffers: int = 2
    """How many fetched buffers of a partition may wait to be read; then no more is fetched of it."""
    isolation_level: IsolationLevel = "read_uncommitted"
    """Whether messages of transactions that are open or aborted are delivered."""
    check_crcs: bool = True
    """Check that what was fetched is what was written."""
    auto_commit: bool = True
    """Commit what was delivered every auto_commit_interval_ms and when a partition is given up."""
    auto_commit_interval_ms: int = 5000
    """How often that is."""
    session_timeout_ms: int = 45_000
    """A member that its group has not heard of for this long is dropped from it."""
    heartbeat_interval_ms: int = 3000
    """How often a member tells its group that it is there."""
    max_poll_interval_ms: int = 300_000
    """A member that does not ask for messages for this long leaves its group."""
    assignors: tuple[AssignorName, ...] = ("range", "cooperative-sticky")
    """How the group may share out partitions, the favourite first; all members must have one in common."""
    rack: str = ""
    """Where this consumer is, to read from the nearest replica."""
    ordered: bool = False
    """Deliver the messages of all partitions as one stream, in the order of their timestamps."""

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
