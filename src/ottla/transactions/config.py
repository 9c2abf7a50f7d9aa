"""Transaction settings, with Kafka's names."""

from __future__ import annotations

from msgspec import Struct


class TransactionConfig(Struct, frozen=True, kw_only=True):
    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms: the maximum transaction timeout of a producer."""
    id_expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms: how long a transactional id is kept after its last transaction."""
    id_expiration_check_interval_ms: int = 3_600_000
    """transaction.remove.expired.transaction.cleanup.interval.ms: how often to remove expired ids."""
    state_topic_partitions: int = 0
    """transaction.state.log.num.partitions: partitions of `__transaction_state` when it is created; 0 for the
    default: 1 standalone, 12 in a cluster."""

    max_id_length: int = 1024
    """Maximum length of a transactional id."""
    max_memory_bytes: int = 64 << 20
    """Maximum memory of transactional ids and the partitions of their transactions, estimated."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            least = 0 if name == "state_topic_partitions" else 1
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
