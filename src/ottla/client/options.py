"""The options of `ottla.client.config` as typed keyword arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from ottla.client.config import (
        Acks,
        AssignorName,
        CompressionName,
        IsolationLevel,
        Partitioner,
        ResetPolicy,
    )
    from ottla.client.security import Security


class ClientOptions(TypedDict, total=False):
    client_id: str
    request_timeout_ms: int
    connect_timeout_ms: int
    metadata_max_age_ms: int
    metadata_refresh_retry_count: int
    metadata_refresh_retry_ms: int
    leader_election_retry_count: int
    leader_election_retry_ms: int
    stale_metadata_retry_ms: int
    backoff_first_ms: int
    backoff_max_ms: int
    fetcher_bundle_max_wait_ms: int
    fetcher_bundle_min_requests: int
    pusher_bundle_max_wait_ms: int
    pusher_bundle_min_requests: int
    serializer_chunk_bytes: int
    deserializer_chunk_bytes: int
    security: Security | None


class ProducerOptions(TypedDict, total=False):
    acks: Acks
    idempotence: bool
    transactional_id: str | None
    transaction_timeout_ms: int
    compression: CompressionName
    compression_level: int | None
    producer_batch_timeout_ms: int
    producer_max_bytes: int
    producer_queue_buffers: int
    produce_request_timeout_ms: int
    delivery_timeout_ms: int
    max_in_flight: int
    partitioner: Partitioner | None


class ConsumerOptions(TypedDict, total=False):
    group: str | None
    group_instance_id: str | None
    auto_offset_reset: ResetPolicy
    consumer_max_wait_ms: int
    consumer_min_bytes: int
    consumer_max_bytes: int
    consumer_queue_buffers: int
    isolation_level: IsolationLevel
    check_crcs: bool
    auto_commit: bool
    auto_commit_interval_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    assignors: tuple[AssignorName, ...]
    rack: str
    ordered: bool
