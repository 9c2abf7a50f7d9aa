"""Default partition counts and configs of a new topic, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.topics import AUDIT, CONSUMER_OFFSETS, INTERNAL_TOPICS, SHARE_GROUP_STATE, TRANSACTION_STATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.settings import Settings

INTERNAL_TOPIC_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": str(100 << 20),
}
"""The configs with which Kafka creates its internal topics."""
SHARE_GROUP_STATE_CONFIGS: Final = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "max.message.bytes": str(16 << 20),
    "retention.bytes": "-1",
    "retention.ms": "-1",
    "segment.bytes": str(100 << 20),
}
"""Neither compacted nor deleted by retention: records depend on each other, and the writer deletes the oldest ones."""
AUDIT_CONFIGS: Final = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "retention.ms": str(365 * 24 * 3600 * 1000),
    "segment.bytes": str(100 << 20),
}


def topic_defaults(
    settings: Settings, name: str, partitions: int | None, configs: Mapping[str, str] | None
) -> tuple[int, Mapping[str, str]]:
    if name == CONSUMER_OFFSETS:
        partitions = partitions or settings.broker.offsets_topic_partitions
    if name == TRANSACTION_STATE:
        partitions = partitions or settings.transactions.state_topic_partitions
    if name == SHARE_GROUP_STATE:
        partitions = partitions or settings.share.state_topic_partitions
        configs = configs or SHARE_GROUP_STATE_CONFIGS
    if name == AUDIT:
        partitions, configs = partitions or 1, configs or AUDIT_CONFIGS
    if configs is None:
        configs = INTERNAL_TOPIC_CONFIGS if name in INTERNAL_TOPICS else {}
    return partitions or settings.broker.default_partitions, configs
