"""Configs of share groups: of all that a broker has, and of one."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import Rule, at_least, between, one_of
from ottla.core.ids import problem_with_topic_name
from ottla.share.settings import (
    DEAD_LETTERS,
    DELIVERY_LIMIT,
    HEARTBEAT_INTERVAL,
    ISOLATION,
    LOCK_DURATION,
    MOST_LOCKS,
    OFFSET_RESET,
    RENEWS,
    SESSION_TIMEOUT,
    is_offset_reset,
)

_OFFSET_RESET: Final = Rule("earliest, latest or by_duration:P… as in ISO 8601", is_offset_reset)
_TOPIC: Final = Rule("the name of a topic, or empty", lambda name: not name or problem_with_topic_name(name) is None)

SHARE_GROUPS: Final = (
    Definition(
        name="group.share.record.lock.duration.ms",
        type=ConfigType.INT,
        default=30_000,
        is_read_only=True,
        documentation="How long a record is one consumer's before others may have it.",
    ),
    Definition(
        name="group.share.delivery.count.limit",
        type=ConfigType.INT,
        default=5,
        is_read_only=True,
        documentation="How often a record is delivered before it is given up.",
    ),
    Definition(
        name="group.share.partition.max.record.locks",
        type=ConfigType.INT,
        default=2000,
        is_read_only=True,
        documentation="How many records of a partition a share group may have in flight.",
    ),
    Definition(
        name="group.share.session.timeout.ms",
        type=ConfigType.INT,
        default=45_000,
        is_read_only=True,
        documentation="After how long a silence a member is taken out of its share group.",
    ),
    Definition(
        name="group.share.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=5_000,
        is_read_only=True,
        documentation="How often members of share groups are to send a heartbeat.",
    ),
    Definition(
        name="group.share.max.size",
        type=ConfigType.INT,
        default=200,
        is_read_only=True,
        documentation="How many members a share group may have.",
    ),
    Definition(
        name="group.share.max.share.sessions",
        type=ConfigType.INT,
        default=2000,
        is_read_only=True,
        documentation="How many members of share groups may fetch from the broker at a time.",
    ),
    Definition(
        name="share.coordinator.state.topic.num.partitions",
        type=ConfigType.INT,
        default=1,
        is_read_only=True,
        documentation="How many partitions __share_group_state, the topic of share groups, is created with.",
    ),
    Definition(
        name="share.coordinator.snapshot.update.records.per.snapshot",
        type=ConfigType.INT,
        default=500,
        is_read_only=True,
        documentation="After how many changes all state of a partition is written anew to __share_group_state.",
    ),
)

OF_ONE_SHARE_GROUP: Final = (
    Definition(
        name=LOCK_DURATION,
        type=ConfigType.INT,
        default=30_000,
        rule=between(100, 3_600_000),
        broker_name="group.share.record.lock.duration.ms",
        documentation="How long a record is one consumer's before others may have it.",
    ),
    Definition(
        name=DELIVERY_LIMIT,
        type=ConfigType.INT,
        default=5,
        rule=between(1, 1000),
        broker_name="group.share.delivery.count.limit",
        documentation="How often a record is delivered before it is given up, and becomes a dead letter if there is a "
        "topic for them.",
    ),
    Definition(
        name=MOST_LOCKS,
        type=ConfigType.INT,
        default=2000,
        rule=between(10, 100_000),
        broker_name="group.share.partition.max.record.locks",
        documentation="How many records of a partition the group may have in flight.",
    ),
    Definition(
        name=SESSION_TIMEOUT,
        type=ConfigType.INT,
        default=45_000,
        rule=at_least(1000),
        broker_name="group.share.session.timeout.ms",
        documentation="After how long a silence a member is taken out of the group.",
    ),
    Definition(
        name=HEARTBEAT_INTERVAL,
        type=ConfigType.INT,
        default=5_000,
        rule=at_least(100),
        broker_name="group.share.heartbeat.interval.ms",
        documentation="How often members are to send a heartbeat.",
    ),
    Definition(
        name=OFFSET_RESET,
        type=ConfigType.STRING,
        default="latest",
        rule=_OFFSET_RESET,
        documentation="Where a new share group begins: earliest, latest, or by_duration:PT1H for the last hour.",
    ),
    Definition(
        name=ISOLATION,
        type=ConfigType.STRING,
        default="read_uncommitted",
        rule=one_of("read_uncommitted", "read_committed"),
        documentation="Whether records of transactions are delivered only once they are committed.",
    ),
    Definition(
        name=RENEWS,
        type=ConfigType.BOOLEAN,
        default=True,
        documentation="Whether consumers may ask for more time with a record.",
    ),
    Definition(
        name=DEAD_LETTERS,
        type=ConfigType.STRING,
        default="",
        rule=_TOPIC,
        documentation="The topic that gets a copy of each record that is rejected, or delivered as often as it may be; "
        "empty for none. It is created if it does not exist.",
    ),
)
