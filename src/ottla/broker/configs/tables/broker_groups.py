"""Broker configs: consumer groups and transactions."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition

_NO_LIMIT: Final = (1 << 31) - 1

GROUPS: Final = (
    Definition(
        name="group.initial.rebalance.delay.ms",
        type=ConfigType.INT,
        default=0,
        is_read_only=True,
        documentation=(
            "How long a group that was empty waits for more members before its first rebalance. "
            "0 lets the first member start at once."
        ),
    ),
    Definition(
        name="group.min.session.timeout.ms",
        type=ConfigType.INT,
        default=6000,
        is_read_only=True,
        documentation="The shortest session timeout that a group member may ask for.",
    ),
    Definition(
        name="group.max.session.timeout.ms",
        type=ConfigType.INT,
        default=1_800_000,
        is_read_only=True,
        documentation="The longest session timeout that a group member may ask for.",
    ),
    Definition(
        name="group.max.size",
        type=ConfigType.INT,
        default=_NO_LIMIT,
        is_read_only=True,
        documentation="How many members a group may have.",
    ),
    Definition(
        name="offset.metadata.max.bytes",
        type=ConfigType.INT,
        default=4096,
        is_read_only=True,
        documentation="How long the text may be that a consumer commits beside an offset.",
    ),
    Definition(
        name="offsets.retention.minutes",
        type=ConfigType.INT,
        default=10_080,
        is_read_only=True,
        documentation="How long the committed offsets of a group without members are kept.",
    ),
    Definition(
        name="offsets.retention.check.interval.ms",
        type=ConfigType.LONG,
        default=600_000,
        is_read_only=True,
        documentation="How often committed offsets are looked for that have had their time.",
    ),
    Definition(
        name="offsets.topic.num.partitions",
        type=ConfigType.INT,
        default=1,
        is_read_only=True,
        documentation="How many partitions __consumer_offsets, the topic of committed offsets, is created with.",
    ),
    Definition(
        name="offsets.topic.replication.factor",
        type=ConfigType.SHORT,
        default=1,
        is_read_only=True,
        documentation="How many replicas __consumer_offsets is created with.",
    ),
    Definition(
        name="offsets.topic.segment.bytes",
        type=ConfigType.INT,
        default=100 << 20,
        is_read_only=True,
        documentation="segment.bytes of __consumer_offsets: small, so that it is compacted and loaded fast.",
    ),
)

TRANSACTIONS: Final = (
    Definition(
        name="transaction.max.timeout.ms",
        type=ConfigType.INT,
        default=900_000,
        is_read_only=True,
        documentation="The longest transaction timeout that a producer may ask for.",
    ),
    Definition(
        name="transactional.id.expiration.ms",
        type=ConfigType.INT,
        default=604_800_000,
        is_read_only=True,
        documentation="How long a transactional id is remembered after its last transaction.",
    ),
    Definition(
        name="transaction.state.log.num.partitions",
        type=ConfigType.INT,
        default=1,
        is_read_only=True,
        documentation="How many partitions __transaction_state, the topic of transactions, is created with.",
    ),
    Definition(
        name="transaction.state.log.replication.factor",
        type=ConfigType.SHORT,
        default=1,
        is_read_only=True,
        documentation="How many replicas __transaction_state is created with.",
    ),
    Definition(
        name="transaction.state.log.min.isr",
        type=ConfigType.INT,
        default=1,
        is_read_only=True,
        documentation="min.insync.replicas of __transaction_state.",
    ),
    Definition(
        name="transaction.state.log.segment.bytes",
        type=ConfigType.INT,
        default=100 << 20,
        is_read_only=True,
        documentation="segment.bytes of __transaction_state: small, so that it is compacted and loaded fast.",
    ),
)
