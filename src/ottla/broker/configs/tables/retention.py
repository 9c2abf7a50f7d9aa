"""Topic configs: retention and compaction."""

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
            "How old data is removed. delete: segments beyond retention.ms or retention.bytes are deleted. "
            "compact: only the newest record of each key is kept; every record needs a key. compact,delete: both. "
            "An empty list keeps everything."
        ),
    ),
    Definition(
        name="retention.ms",
        type=ConfigType.LONG,
        default=7 * _DAY_MS,
        rule=at_least(-1),
        broker_name="log.retention.ms",
        documentation=(
            "The age at which records are deleted, if cleanup.policy contains delete. Data is deleted a segment "
            "at a time, when the newest record of the segment is too old. -1 for no limit."
        ),
    ),
    Definition(
        name="retention.bytes",
        type=ConfigType.LONG,
        default=-1,
        broker_name="log.retention.bytes",
        documentation=(
            "The partition size above which the oldest segments are deleted, if cleanup.policy contains delete. "
            "It applies to each partition, not to the topic. Negative for no limit."
        ),
    ),
    Definition(
        name="file.delete.delay.ms",
        type=ConfigType.LONG,
        default=60_000,
        rule=at_least(0),
        broker_name="log.segment.delete.delay.ms",
        documentation="The delay before a file marked for deletion is removed.",
    ),
    Definition(
        name="delete.retention.ms",
        type=ConfigType.LONG,
        default=_DAY_MS,
        rule=at_least(0),
        broker_name="log.cleaner.delete.retention.ms",
        documentation=(
            "How long compaction keeps tombstones (records with a null value, which delete their key). A consumer "
            "that reads the whole topic within this time sees every deletion. Tombstones are kept longer while a "
            "replica is not in sync."
        ),
    ),
    Definition(
        name="min.compaction.lag.ms",
        type=ConfigType.LONG,
        default=0,
        rule=at_least(0),
        broker_name="log.cleaner.min.compaction.lag.ms",
        documentation="The minimum time that a record stays uncompacted.",
    ),
    Definition(
        name="max.compaction.lag.ms",
        type=ConfigType.LONG,
        default=_FOREVER,
        rule=at_least(1),
        broker_name="log.cleaner.max.compaction.lag.ms",
        documentation=(
            "The maximum time that a record stays uncompacted, even if compaction gains little. "
            "Must not be less than min.compaction.lag.ms. A compacted topic rolls segments at least this often."
        ),
    ),
    Definition(
        name="min.cleanable.dirty.ratio",
        type=ConfigType.DOUBLE,
        default=0.5,
        rule=between(0, 1),
        broker_name="log.cleaner.min.cleanable.ratio",
        documentation=(
            "The minimum ratio of uncompacted to total log size for compaction. Lower values compact "
            "more often and save space; higher values save work."
        ),
    ),
    Definition(
        name="local.retention.ms",
        type=ConfigType.LONG,
        default=-2,
        rule=at_least(-2),
        broker_name="log.local.retention.ms",
        documentation=(
            "With tiered storage, the maximum age of local data; -2 for retention.ms. "
            "Without tiered storage, as here, it has no effect."
        ),
    ),
    Definition(
        name="local.retention.bytes",
        type=ConfigType.LONG,
        default=-2,
        rule=at_least(-2),
        broker_name="log.local.retention.bytes",
        documentation=(
            "With tiered storage, the maximum local size of a partition; -2 for retention.bytes. "
            "Without tiered storage, as here, it has no effect."
        ),
    ),
)
