"""Broker configs: how topics come to be, and what is done for all logs."""

from typing import Final

from msgspec.structs import replace

from ottla.broker.configs.definition import ConfigType, Definition, Definitions
from ottla.broker.configs.rules import at_least

_FALLBACKS: Final = {
    "log.retention.ms": ("log.retention.minutes", "log.retention.hours"),
    "log.roll.ms": ("log.roll.hours",),
    "log.roll.jitter.ms": ("log.roll.jitter.hours",),
}

TOPICS: Final = (
    Definition(
        name="auto.create.topics.enable",
        type=ConfigType.BOOLEAN,
        default=True,
        is_read_only=True,
        documentation="Whether a topic is created when a client first asks for it.",
    ),
    Definition(
        name="num.partitions",
        type=ConfigType.INT,
        default=1,
        rule=at_least(1),
        is_read_only=True,
        documentation="How many partitions a topic gets whose creator does not say.",
    ),
    Definition(
        name="default.replication.factor",
        type=ConfigType.INT,
        default=1,
        is_read_only=True,
        documentation="How many replicas the partitions of a topic get whose creator does not say.",
    ),
    Definition(
        name="delete.topic.enable",
        type=ConfigType.BOOLEAN,
        default=True,
        is_read_only=True,
        documentation="Whether topics can be deleted.",
    ),
    Definition(
        name="remote.log.storage.system.enable",
        type=ConfigType.BOOLEAN,
        default=False,
        is_read_only=True,
        documentation="Whether there is tiered storage. There is none in this broker.",
    ),
)

UPKEEP: Final = (
    Definition(
        name="log.retention.minutes",
        type=ConfigType.INT,
        default=None,
        is_read_only=True,
        documentation="log.retention.ms in minutes, for where that is not set.",
    ),
    Definition(
        name="log.retention.hours",
        type=ConfigType.INT,
        default=168,
        is_read_only=True,
        documentation="log.retention.ms in hours, for where neither that nor log.retention.minutes is set.",
    ),
    Definition(
        name="log.roll.hours",
        type=ConfigType.INT,
        default=168,
        is_read_only=True,
        documentation="log.roll.ms in hours, for where that is not set.",
    ),
    Definition(
        name="log.roll.jitter.hours",
        type=ConfigType.INT,
        default=0,
        is_read_only=True,
        documentation="log.roll.jitter.ms in hours, for where that is not set.",
    ),
    Definition(
        name="log.retention.check.interval.ms",
        type=ConfigType.LONG,
        default=300_000,
        is_read_only=True,
        documentation="How often the broker looks for segments that have had their time.",
    ),
    Definition(
        name="log.flush.offset.checkpoint.interval.ms",
        type=ConfigType.INT,
        default=60_000,
        is_read_only=True,
        documentation="How often the broker notes how far each log is on the disk, so that a restart can begin there.",
    ),
    Definition(
        name="log.cleaner.enable",
        type=ConfigType.BOOLEAN,
        default=True,
        is_read_only=True,
        documentation="Whether topics whose cleanup.policy says compact are compacted.",
    ),
    Definition(
        name="producer.id.expiration.ms",
        type=ConfigType.INT,
        default=86_400_000,
        rule=at_least(1),
        documentation=(
            "How long a silent producer's sequence numbers are remembered; after that a repetition is not recognised."
        ),
    ),
)


def topic_defaults(topic_configs: Definitions) -> tuple[Definition, ...]:
    """The broker configs that topics follow which have no value of their own."""
    return tuple(_default_of(one, one.broker_name) for one in topic_configs.values() if one.broker_name is not None)


def _default_of(topic_config: Definition, name: str) -> Definition:
    fallbacks = _FALLBACKS.get(name, ())
    return replace(
        topic_config,
        name=name,
        broker_name=None,
        # What has a fallback has no value of its own, or the fallback would never count.
        default=None if fallbacks else topic_config.default,
        fallbacks=fallbacks,
        documentation=f"{topic_config.name} of topics that do not set it. {topic_config.documentation}",
    )
