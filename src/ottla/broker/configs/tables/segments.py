"""Topic configs: segment files and flushing."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import at_least

_DAY_MS: Final = 86_400_000
_NEVER: Final = (1 << 63) - 1

SEGMENTS: Final = (
    Definition(
        name="segment.bytes",
        type=ConfigType.INT,
        default=1 << 30,
        # Kafka's bound since 4.0 (KIP-1030), used here too: a topic that works in a test with Ottla must not be
        # rejected by Kafka in production. Tests with small files use internal.segment.bytes, as in Kafka.
        rule=at_least(1 << 20),
        broker_name="log.segment.bytes",
        documentation=(
            "The maximum size of a segment file. Old data is deleted and compacted a "
            "segment at a time, so smaller segments follow the limits more closely but need more open files."
        ),
    ),
    Definition(
        name="internal.segment.bytes",
        type=ConfigType.INT,
        default=None,
        rule=at_least(1024),
        is_hidden=True,
        documentation="Overrides segment.bytes, without its lower bound. For tests only.",
    ),
    Definition(
        name="encryption.key.version",
        type=ConfigType.INT,
        default=0,
        rule=at_least(0),
        is_hidden=True,
        documentation=(
            "Encrypt each partition of the topic with a separate key, which is deleted with it. Another version is "
            "another key; 0 is for the keys of the data folder. Ottla's own; needs encryption at rest."
        ),
    ),
    Definition(
        name="segment.ms",
        type=ConfigType.LONG,
        default=7 * _DAY_MS,
        rule=at_least(1),
        broker_name="log.roll.ms",
        documentation=(
            "The time after which a segment is rolled even if it is not full, so that the data of a quiet "
            "partition can become old enough to be deleted or compacted."
        ),
    ),
    Definition(
        name="segment.jitter.ms",
        type=ConfigType.LONG,
        default=0,
        rule=at_least(0),
        broker_name="log.roll.jitter.ms",
        documentation=(
            "The maximum random jitter that is subtracted from segment.ms, so that partitions created together do not "
            "roll their segments at the same time."
        ),
    ),
    Definition(
        name="segment.index.bytes",
        type=ConfigType.INT,
        default=10 << 20,
        rule=at_least(4),
        broker_name="log.index.size.max.bytes",
        documentation=("The maximum size of a segment's index; a full index rolls the segment. At least 1024."),
    ),
    Definition(
        name="index.interval.bytes",
        type=ConfigType.INT,
        default=4096,
        rule=at_least(0),
        broker_name="log.index.interval.bytes",
        documentation=(
            "The bytes of records between two index entries. Fewer bytes make lookups more "
            "precise, and the index larger."
        ),
    ),
    Definition(
        name="preallocate",
        type=ConfigType.BOOLEAN,
        default=False,
        broker_name="log.preallocate",
        documentation="Kafka preallocates new segment files if true. No effect here.",
    ),
    Definition(
        name="flush.messages",
        type=ConfigType.LONG,
        default=_NEVER,
        rule=at_least(1),
        broker_name="log.flush.interval.messages",
        documentation=(
            "Flush after this many records. Any limit makes the broker flush before it "
            "acknowledges records (with group commit), so that a power cut loses no acknowledged record."
        ),
    ),
    Definition(
        name="flush.ms",
        type=ConfigType.LONG,
        # Kafka's default is never. Ottla flushes in the background, and the value must show that.
        default=1000,
        rule=at_least(0),
        broker_name="log.flush.interval.ms",
        documentation=(
            "How often records are flushed in the background; a power cut loses at most the records written "
            "since. The largest number, 9223372036854775807, leaves it to the operating system."
        ),
    ),
)
