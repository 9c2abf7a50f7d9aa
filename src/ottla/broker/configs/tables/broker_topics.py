"""Broker configs: creation of topics, and maintenance of logs."""

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
        documentation="Whether a topic is created when a client first requests it.",
    ),
    Definition(
        name="num.partitions",
        type=ConfigType.INT,
        default=1,
        rule=at_least(1),
        is_read_only=True,
        documentation="The number of partitions of topics that are created without one.",
    ),
    Definition(
        name="default.replication.factor",
        type=ConfigType.INT,
        default=1,
        is_read_only=True,
        documentation="The replication factor of topics that are created without one.",
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
        documentation="Whether tiered storage is enabled. Not supported by this broker.",
    ),
)

UPKEEP: Final = (
    Definition(
        name="log.retention.minutes",
        type=ConfigType.INT,
        default=None,
        is_read_only=True,
        documentation="log.retention.ms in minutes, used if that is not set.",
    ),
    Definition(
        name="log.retention.hours",
        type=ConfigType.INT,
        default=168,
        is_read_only=True,
        documentation="log.retention.ms in hours, used if neither that nor log.retention.minutes is set.",
    ),
    Definition(
        name="log.roll.hours",
        type=ConfigType.INT,
        default=168,
        is_read_only=True,
        documentation="log.roll.ms in hours, used if that is not set.",
    ),
    Definition(
        name="log.roll.jitter.hours",
        type=ConfigType.INT,
        default=0,
        is_read_only=True,
        documentation="log.roll.jitter.ms in hours, used if that is not set.",
    ),
    Definition(
        name="log.retention.check.interval.ms",
        type=ConfigType.LONG,
        default=300_000,
        is_read_only=True,
        documentation="How often the broker checks for segments to delete.",
    ),
    Definition(
        name="log.flush.offset.checkpoint.interval.ms",
        type=ConfigType.INT,
        default=60_000,
        is_read_only=True,
        documentation="How often the broker checkpoints the recovery point of each log.",
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
            "How long an idle producer's sequence numbers are kept; duplicates are not detected after that."
        ),
    ),
)


def topic_defaults(topic_configs: Definitions) -> tuple[Definition, ...]:
    """The broker configs that are the defaults of topic configs."""
    return tuple(_default_of(one, one.broker_name) for one in topic_configs.values() if one.broker_name is not None)


def _default_of(topic_config: Definition, name: str) -> Definition:
    fallbacks = _FALLBACKS.get(name, ())
    return replace(
        topic_config,
        name=name,
        broker_name=None,
        # A config with a fallback must not have a default, or the fallback would never be used.
        default=None if fallbacks else topic_config.default,
        fallbacks=fallbacks,
        documentation=f"{topic_config.name} of topics that do not set it. {topic_config.documentation}",
    )
