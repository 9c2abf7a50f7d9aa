"""Broker configs: consumer groups, in which the broker assigns."""

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
        documentation="How long a member of a consumer group may be silent before it counts as gone.",
    ),
    Definition(
        name="group.consumer.min.session.timeout.ms",
        type=ConfigType.INT,
        default=45_000,
        is_read_only=True,
        documentation="The shortest session timeout that a consumer group may be given.",
    ),
    Definition(
        name="group.consumer.max.session.timeout.ms",
        type=ConfigType.INT,
        default=60_000,
        is_read_only=True,
        documentation="The longest session timeout that a consumer group may be given.",
    ),
    Definition(
        name="group.consumer.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=5000,
        is_read_only=True,
        documentation="How often members of a consumer group are to be heard of.",
    ),
    Definition(
        name="group.consumer.min.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=5000,
        is_read_only=True,
        documentation="The shortest heartbeat interval that a consumer group may be given.",
    ),
    Definition(
        name="group.consumer.max.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=15_000,
        is_read_only=True,
        documentation="The longest heartbeat interval that a consumer group may be given.",
    ),
    Definition(
        name="group.consumer.max.size",
        type=ConfigType.INT,
        default=_NO_LIMIT,
        is_read_only=True,
        documentation="How many members a consumer group may have.",
    ),
    Definition(
        name="group.consumer.assignors",
        type=ConfigType.LIST,
        default=("uniform", "range"),
        is_read_only=True,
        documentation="Who may share partitions out; the first does where members name none.",
    ),
    Definition(
        name="group.consumer.migration.policy",
        type=ConfigType.STRING,
        default="bidirectional",
        rule=one_of("disabled", "upgrade", "downgrade", "bidirectional"),
        is_read_only=True,
        documentation="Whether a classic group becomes a consumer group and back, as its members come and go.",
    ),
)

OF_ONE_GROUP: Final = (
    Definition(
        name="consumer.session.timeout.ms",
        type=ConfigType.INT,
        default=45_000,
        broker_name="group.consumer.session.timeout.ms",
        documentation="How long a member of this group may be silent before it counts as gone.",
    ),
    Definition(
        name="consumer.heartbeat.interval.ms",
        type=ConfigType.INT,
        default=5000,
        broker_name="group.consumer.heartbeat.interval.ms",
        documentation="How often members of this group are to be heard of.",
    ),
)
"""What the group resource of the config APIs has."""
