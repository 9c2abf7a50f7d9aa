"""Topic configs: how long records are kept, and what compaction leaves of them."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import at_least, between, items_of

_DAY_MS: Final = 86_400_000
_FOREVER: Final = (1 << 63) - 1

RETENTION: Final = (
    Definition(
        name="cleanup.policy",
        type=ConfigType.LIST,
        default=("delete",),
        rule=items_of("compact", "delete"),
        broker_name="log.cleanup.policy",
        documentation=(
            "What becomes of old data. delete: whole segments go once they pass retention.ms or retention.bytes. "
            "compact: of each key only the newest record stays, so every record needs a key. compact,delete: both. "
            "With an empty list everything stays."
        ),
    ),
    Definition(
        name="retention.ms",
        type=ConfigType.LONG,
        default=7 * _DAY_MS,
        rule=at_least(-1),
        broker_name="log.retention.ms",
        documentation=(
            "How old a record may get before it can be deleted, if cleanup.policy says delete. Data goes a segment "
            "at a time, when the newest record of the segment is too old. -1 keeps records of any age."
        ),
    ),
    Definition(
        name="retention.bytes",
        type=ConfigType.LONG,
        default=-1,
        broker_name="log.retention.bytes",
        documentation=(
            "How large a partition may get before its oldest segments are deleted, if cleanup.policy says delete. "
            "It counts for each partition by itself, not for the topic. Negative sets no limit."
        ),
    ),
    Definition(
        name="file.delete.delay.ms",
        type=ConfigType.LONG,
        default=60_000,
        rule=at_least(0),
        broker_name="log.segment.delete.delay.ms",
        documentation="How long a file that was set aside for deletion may stay on the disk before it is removed.",
    ),
    Definition(
        name="delete.retention.ms",
        type=ConfigType.LONG,
        default=_DAY_MS,
        rule=at_least(0),
        broker_name="log.cleaner.delete.retention.ms",
        documentation=(
            "How long compaction keeps a record with a null value, which says that its key is deleted. A consumer "
            "that reads the topic from its start within this time learns of every deletion."
        ),
    ),
    Definition(
        name="min.compaction.lag.ms",
        type=ConfigType.LONG,
        default=0,
        rule=at_least(0),
        broker_name="log.cleaner.min.compaction.lag.ms",
        documentation="How long compaction leaves a record alone, even if a newer one with its key has arrived.",
    ),
    Definition(
        name="max.compaction.lag.ms",
        type=ConfigType.LONG,
        default=_FOREVER,
        rule=at_least(1),
        broker_name="log.cleaner.max.compaction.lag.ms",
        documentation=(
            "How long a record can go without having been looked at by compaction, however little there is to gain. "
            "Must not be less than min.compaction.lag.ms. A compacted topic begins new segments at least this often."
        ),
    ),
    Definition(
        name="min.cleanable.dirty.ratio",
        type=ConfigType.DOUBLE,
        default=0.5,
        rule=between(0, 1),
        broker_name="log.cleaner.min.cleanable.ratio",
        documentation=(
            "Compact a partition once this share of it has arrived since it was last compacted. Near 0 it is done "
            "often and saves space; near 1 it is done seldom and saves work."
        ),
    ),
    Definition(
        name="local.retention.ms",
        type=ConfigType.LONG,
        default=-2,
        rule=at_least(-2),
        broker_name="log.local.retention.ms",
        documentation=(
            "With tiered storage, how old a local copy may get; -2 stands for retention.ms. "
            "Without tiered storage, as here, it is kept but changes nothing."
        ),
    ),
    Definition(
        name="local.retention.bytes",
        type=ConfigType.LONG,
        default=-2,
        rule=at_least(-2),
        broker_name="log.local.retention.bytes",
        documentation=(
            "With tiered storage, how large the local part of a partition may get; -2 stands for retention.bytes. "
            "Without tiered storage, as here, it is kept but changes nothing."
        ),
    ),
)
