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
        documentation=("How long a new group waits for more members before its first rebalance. 0 starts at once."),
    ),
    Definition(
        name="group.min.session.timeout.ms",
        type=ConfigType.INT,
        default=6000,
        is_read_only=True,
        documentation="The minimum session timeout of group members.",
    ),
    Definition(
        name="group.max.session.timeout.ms",
        type=ConfigType.INT,
        default=1_800_000,
        is_read_only=True,
        documentation="The maximum session timeout of group members.",
    ),
    Definition(
        name="group.max.size",
        type=ConfigType.INT,
        default=_NO_LIMIT,
        is_read_only=True,
        documentation="The maximum number of members of a group.",
    ),
    Definition(
        name="offset.metadata.max.bytes",
        type=ConfigType.INT,
        default=4096,
        is_read_only=True,
        documentation="The maximum size of the metadata of a committed offset.",
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
        documentation="How often the broker checks for expired committed offsets.",
    ),
    Definition(
        name="offsets.topic.num.partitions",
        type=ConfigType.INT,
        default=1,
        is_read_only=True,
        documentation="The number of partitions of __consumer_offsets, the topic of committed offsets.",
    ),
    Definition(
        name="offsets.topic.replication.factor",
        type=ConfigType.SHORT,
        default=1,
        is_read_only=True,
        documentation="The replication factor of __consumer_offsets.",
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
        documentation="The maximum transaction timeout of producers.",
    ),
    Definition(
        name="transactional.id.expiration.ms",
        type=ConfigType.INT,
        default=604_800_000,
        is_read_only=True,
        documentation="How long a transactional id is kept after its last transaction.",
    ),
    Definition(
        name="transaction.state.log.num.partitions",
        type=ConfigType.INT,
        default=1,
        is_read_only=True,
        documentation="The number of partitions of __transaction_state, the topic of transactions.",
    ),
    Definition(
        name="transaction.state.log.replication.factor",
        type=ConfigType.SHORT,
        default=1,
        is_read_only=True,
        documentation="The replication factor of __transaction_state.",
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
