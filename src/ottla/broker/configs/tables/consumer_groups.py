"""Broker configs: consumer groups with server-side assignment (KIP-848)."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import one_of

_NO_LIMIT: Final = (1 << 31) - 1

CONSUMER_GROUPS: Final = (
    Definition(
        name="group.consumer.session.timeout.ms",
        type=ConfigType.INT,
        default=45_000,
        is_read_only=True,
        documentation="The session timeout of consumer group members.",
    ),
    Definition(
        name="group.consumer.min.session.timeout.ms",
        type=ConfigType.INT,
        default=45_000,
        is_read_only=True,
        documentation="The minimum session timeout of a consumer group.",
    ),
    Definition(
        name="group.consumer.max.session.timeout.ms",
        type=ConfigType.INT,
        default=60_000,
        is_read_only=True,
        documentation="The maximum session timeout of a consumer group.",
    ),
    Definition(
        name="group.consumer.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=5000,
        is_read_only=True,
        documentation="The heartbeat interval of consumer group members.",
    ),
    Definition(
        name="group.consumer.min.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=5000,
        is_read_only=True,
        documentation="The minimum heartbeat interval of a consumer group.",
    ),
    Definition(
        name="group.consumer.max.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=15_000,
        is_read_only=True,
        documentation="The maximum heartbeat interval of a consumer group.",
    ),
    Definition(
        name="group.consumer.max.size",
        type=ConfigType.INT,
        default=_NO_LIMIT,
        is_read_only=True,
        documentation="The maximum number of members of a consumer group.",
    ),
    Definition(
        name="group.consumer.assignors",
        type=ConfigType.LIST,
        default=("uniform", "range"),
        is_read_only=True,
        documentation="The server-side assignors; the first is the default.",
    ),
    Definition(
        name="group.consumer.migration.policy",
        type=ConfigType.STRING,
        default="bidirectional",
        rule=one_of("disabled", "upgrade", "downgrade", "bidirectional"),
        is_read_only=True,
        documentation="Whether classic groups become consumer groups and back when their members change.",
    ),
)

OF_ONE_GROUP: Final = (
    Definition(
        name="consumer.session.timeout.ms",
        type=ConfigType.INT,
        default=45_000,
        broker_name="group.consumer.session.timeout.ms",
        documentation="The session timeout of members of this group.",
    ),
    Definition(
        name="consumer.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=5000,
        broker_name="group.consumer.heartbeat.interval.ms",
        documentation="The heartbeat interval of members of this group.",
    ),
)
"""The configs of the group resource."""
