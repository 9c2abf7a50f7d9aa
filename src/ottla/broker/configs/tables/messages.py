"""Topic configs: limits and processing of record batches."""

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
        documentation="The maximum size of a record batch, after compression.",
    ),
    Definition(
        name="message.timestamp.type",
        type=ConfigType.STRING,
        default="CreateTime",
        rule=one_of("CreateTime", "LogAppendTime"),
        broker_name="log.message.timestamp.type",
        documentation=(
            "The source of timestamps. CreateTime: the producer. LogAppendTime: the broker, when it appends."
        ),
    ),
    Definition(
        name="message.timestamp.before.max.ms",
        type=ConfigType.LONG,
        default=_ANY,
        rule=at_least(0),
        broker_name="log.message.timestamp.before.max.ms",
        documentation=(
            "How far a producer's timestamp may be in the past; older records are rejected. Ignored with LogAppendTime."
        ),
    ),
    Definition(
        name="message.timestamp.after.max.ms",
        type=ConfigType.LONG,
        default=_HOUR_MS,
        rule=at_least(0),
        broker_name="log.message.timestamp.after.max.ms",
        documentation=(
            "How far a producer's timestamp may be in the future; later records are rejected. "
            "Ignored with LogAppendTime."
        ),
    ),
    Definition(
        name="compression.type",
        type=ConfigType.STRING,
        default="producer",
        rule=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        broker_name="compression.type",
        documentation=(
            "The compression of the log. producer: keep the producer's compression. A codec, "
            "or uncompressed: batches in another form are converted."
        ),
    ),
    Definition(
        name="compression.gzip.level",
        type=ConfigType.INT,
        default=-1,
        rule=GZIP_LEVEL,
        broker_name="compression.gzip.level",
        documentation="The gzip level if compression.type is gzip: 1 is fastest, 9 is smallest, -1 is the default.",
    ),
    Definition(
        name="compression.lz4.level",
        type=ConfigType.INT,
        default=9,
        rule=between(1, 17),
        broker_name="compression.lz4.level",
        documentation="The LZ4 level if compression.type is lz4: 1 is fastest, 17 is smallest.",
    ),
    Definition(
        name="compression.zstd.level",
        type=ConfigType.INT,
        default=3,
        rule=between(-(1 << 17), 22),
        broker_name="compression.zstd.level",
        documentation="The zstd level if compression.type is zstd: lower is faster, 22 is smallest.",
    ),
)
