"""Topic configs: the files of a partition, and when they are forced to the disk."""

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
        # Kafka's bound since 4.0 (KIP-1030). Ours too: a topic that works in a test here must not be refused in
        # production there. For tests that want small files there is internal.segment.bytes, as in Kafka.
        rule=at_least(1 << 20),
        broker_name="log.segment.bytes",
        documentation=(
            "How large a segment file may grow before a new one is begun. Old data is deleted and compacted a "
            "segment at a time, so smaller segments follow the limits more closely and cost more open files."
        ),
    ),
    Definition(
        name="internal.segment.bytes",
        type=ConfigType.INT,
        default=None,
        rule=at_least(1024),
        is_hidden=True,
        documentation="Takes the place of segment.bytes, without its lower bound. For tests only.",
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
            "How long a segment is written to before a new one is begun, full or not, so that the data of a quiet "
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
            "The most that may be taken off segment.ms at random, so that partitions created together do not all "
            "begin their new segments in the same moment."
        ),
    ),
    Definition(
        name="segment.index.bytes",
        type=ConfigType.INT,
        default=10 << 20,
        rule=at_least(4),
        broker_name="log.index.size.max.bytes",
        documentation=(
            "How large an index of a segment may grow before a new segment is begun. Less than 1024 counts as 1024."
        ),
    ),
    Definition(
        name="index.interval.bytes",
        type=ConfigType.INT,
        default=4096,
        rule=at_least(0),
        broker_name="log.index.interval.bytes",
        documentation=(
            "How many bytes of records may lie between two entries of an index. Fewer bytes make a read start closer "
            "to what it looks for, and the index larger."
        ),
    ),
    Definition(
        name="preallocate",
        type=ConfigType.BOOLEAN,
        default=False,
        broker_name="log.preallocate",
        documentation="Kafka reserves the space of a new segment on the disk if true. Kept here, but changes nothing.",
    ),
    Definition(
        name="flush.messages",
        type=ConfigType.LONG,
        default=_NEVER,
        rule=at_least(1),
        broker_name="log.flush.interval.messages",
        documentation=(
            "Force records to the disk after this many. Any limit that is set here makes the broker do it before it "
            "acknowledges records, in one go for all that wait, so that a power cut loses nothing acknowledged."
        ),
    ),
    Definition(
        name="flush.ms",
        type=ConfigType.LONG,
        # Kafka's own default is never. Ours flushes in the background, and it would be wrong to hide that.
        default=1000,
        rule=at_least(0),
        broker_name="log.flush.interval.ms",
        documentation=(
            "How often records are forced to the disk in the background; a power cut loses at most what arrived "
            "since. The largest number, 9223372036854775807, leaves it to the operating system."
        ),
    ),
)
