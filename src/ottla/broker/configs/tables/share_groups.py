"""Configs of share groups: defaults of the broker, and those of a group."""

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
        documentation="The acquisition lock duration of a record.",
    ),
    Definition(
        name="group.share.delivery.count.limit",
        type=ConfigType.INT,
        default=5,
        is_read_only=True,
        documentation="The maximum number of delivery attempts of a record.",
    ),
    Definition(
        name="group.share.partition.max.record.locks",
        type=ConfigType.INT,
        default=2000,
        is_read_only=True,
        documentation="The maximum number of in-flight records of a partition per share group.",
    ),
    Definition(
        name="group.share.session.timeout.ms",
        type=ConfigType.INT,
        default=45_000,
        is_read_only=True,
        documentation="The session timeout of share group members.",
    ),
    Definition(
        name="group.share.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=5_000,
        is_read_only=True,
        documentation="The heartbeat interval of share group members.",
    ),
    Definition(
        name="group.share.max.size",
        type=ConfigType.INT,
        default=200,
        is_read_only=True,
        documentation="The maximum number of members of a share group.",
    ),
    Definition(
        name="group.share.max.share.sessions",
        type=ConfigType.INT,
        default=2000,
        is_read_only=True,
        documentation="The maximum number of share sessions of the broker.",
    ),
    Definition(
        name="share.coordinator.state.topic.num.partitions",
        type=ConfigType.INT,
        default=1,
        is_read_only=True,
        documentation="The number of partitions of __share_group_state, the topic of share group state.",
    ),
    Definition(
        name="share.coordinator.snapshot.update.records.per.snapshot",
        type=ConfigType.INT,
        default=500,
        is_read_only=True,
        documentation="The number of updates of a share partition between two snapshots in __share_group_state.",
    ),
)

OF_ONE_SHARE_GROUP: Final = (
    Definition(
        name=LOCK_DURATION,
        type=ConfigType.INT,
        default=30_000,
        rule=between(100, 3_600_000),
        broker_name="group.share.record.lock.duration.ms",
        documentation="The acquisition lock duration of a record.",
    ),
    Definition(
        name=DELIVERY_LIMIT,
        type=ConfigType.INT,
        default=5,
        rule=between(1, 1000),
        broker_name="group.share.delivery.count.limit",
        documentation="The maximum number of delivery attempts; then the record is sent to the dead-letter "
        "topic if there is one.",
    ),
    Definition(
        name=MOST_LOCKS,
        type=ConfigType.INT,
        default=2000,
        rule=between(10, 100_000),
        broker_name="group.share.partition.max.record.locks",
        documentation="The maximum number of in-flight records of a partition.",
    ),
    Definition(
        name=SESSION_TIMEOUT,
        type=ConfigType.INT,
        default=45_000,
        rule=at_least(1000),
        broker_name="group.share.session.timeout.ms",
        documentation="The session timeout of members.",
    ),
    Definition(
        name=HEARTBEAT_INTERVAL,
        type=ConfigType.INT,
        default=5_000,
        rule=at_least(100),
        broker_name="group.share.heartbeat.interval.ms",
        documentation="The heartbeat interval of members.",
    ),
    Definition(
        name=OFFSET_RESET,
        type=ConfigType.STRING,
        default="latest",
        rule=_OFFSET_RESET,
        documentation="The start offset of a new share group: earliest, latest, or by_duration:PT1H for the last hour.",
    ),
    Definition(
        name=ISOLATION,
        type=ConfigType.STRING,
        default="read_uncommitted",
        rule=one_of("read_uncommitted", "read_committed"),
        documentation="Whether transactional records are delivered only after the commit.",
    ),
    Definition(
        name=RENEWS,
        type=ConfigType.BOOLEAN,
        default=True,
        documentation="Whether consumers may renew acquisition locks.",
    ),
    Definition(
        name=DEAD_LETTERS,
        type=ConfigType.STRING,
        default="",
        rule=_TOPIC,
        documentation="The dead-letter topic for records that are rejected or reach the maximum number of deliveries; "
        "empty for none. It is created if it does not exist.",
    ),
)
