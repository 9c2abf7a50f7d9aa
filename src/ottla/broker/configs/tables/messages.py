"""Topic configs: what a record batch may be, and what the broker does to it."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import GZIP_LEVEL, at_least, between, one_of

_HOUR_MS: Final = 3_600_000
_ANY: Final = (1 << 63) - 1

MESSAGES: Final = (
    Definition(
        name="max.message.bytes",
        type=ConfigType.INT,
        default=(1 << 20) + 12,
        rule=at_least(0),
        broker_name="message.max.bytes",
        documentation="The largest record batch that is accepted, as it arrives: compressed, if it is compressed.",
    ),
    Definition(
        name="message.timestamp.type",
        type=ConfigType.STRING,
        default="CreateTime",
        rule=one_of("CreateTime", "LogAppendTime"),
        broker_name="log.message.timestamp.type",
        documentation=(
            "Whose clock dates a record. CreateTime: the producer's. LogAppendTime: the broker's, when it appends."
        ),
    ),
    Definition(
        name="message.timestamp.before.max.ms",
        type=ConfigType.LONG,
        default=_ANY,
        rule=at_least(0),
        broker_name="log.message.timestamp.before.max.ms",
        documentation=(
            "How far a producer's timestamp may lie in the past; an older record is refused. "
            "It has no meaning with LogAppendTime."
        ),
    ),
    Definition(
        name="message.timestamp.after.max.ms",
        type=ConfigType.LONG,
        default=_HOUR_MS,
        rule=at_least(0),
        broker_name="log.message.timestamp.after.max.ms",
        documentation=(
            "How far a producer's timestamp may lie in the future; a record further ahead is refused. "
            "It has no meaning with LogAppendTime."
        ),
    ),
    Definition(
        name="compression.type",
        type=ConfigType.STRING,
        default="producer",
        rule=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        broker_name="compression.type",
        documentation=(
            "How records are compressed in the log. producer: as they come, which costs the broker nothing. A codec, "
            "or uncompressed: batches that come in another form are converted."
        ),
    ),
    Definition(
        name="compression.gzip.level",
        type=ConfigType.INT,
        default=-1,
        rule=GZIP_LEVEL,
        broker_name="compression.gzip.level",
        documentation="How hard to compress where compression.type is gzip: 1 is fast, 9 is small, -1 is in between.",
    ),
    Definition(
        name="compression.lz4.level",
        type=ConfigType.INT,
        default=9,
        rule=between(1, 17),
        broker_name="compression.lz4.level",
        documentation="How hard to compress where compression.type is lz4: 1 is fast, 17 is small.",
    ),
    Definition(
        name="compression.zstd.level",
        type=ConfigType.INT,
        default=3,
        rule=between(-(1 << 17), 22),
        broker_name="compression.zstd.level",
        documentation="How hard to compress where compression.type is zstd: the lower the faster, 22 is smallest.",
    ),
)
