"""When an append is safe: synced, if the topic's flush policy says so, and committed, if all replicas must have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition

ALL_REPLICAS: Final = -1
"""As `acks`: the record is acknowledged when every in-sync replica has it."""
_COORDINATOR_PATIENCE_S: Final = 5.0
"""offsets.commit.timeout.ms of Kafka."""


async def until_safe(
    broker: Broker,
    partition: Partition,
    offset: int,
    *,
    acks: int = ALL_REPLICAS,
    timeout_s: float = _COORDINATOR_PATIENCE_S,
) -> None:
    """Return once the record at `offset` can be acknowledged. ApiError if it cannot be, or not in time."""
    if partition.log.config.flush == "ack":
        await broker.flusher.durable(partition, offset)
    if partition.replica is not None and acks == ALL_REPLICAS:
        await partition.replica.replicated(offset, timeout_s)
