"""The broker's configs by source, and the defaults of topics."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from ottla.broker.configs.definitions import TOPIC_DEFINITIONS, broker_definitions
from ottla.broker.configs.topic_config import TopicConfig, build, usable, values_of
from ottla.broker.configs.values import parse, parse_unruled, to_text
from ottla.core.errors import InvalidConfig
from ottla.storage.catalog.entries import ConfigResource, ConfigScope
from ottla.storage.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.configs.definition import Value
    from ottla.storage.catalog.view import CatalogView

Texts: TypeAlias = Mapping[str, str]

PRODUCER_ID_EXPIRATION: Final = "producer.id.expiration.ms"
CLUSTER_DEFAULT: Final = ConfigResource(ConfigScope.BROKER, "")

_FOLLOWERS: Final[Mapping[str, str]] = {
    definition.broker_name: definition.name
    for definition in TOPIC_DEFINITIONS.values()
    if definition.broker_name is not None
}
"""The topic config that follows each broker config."""


class ConfigSource(IntEnum):
    """The source of a value, as DescribeConfigs numbers it."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_GROUP_CONFIG = 8


class BrokerConfigs(Struct, frozen=True, kw_only=True, dict=True):
    """All broker configs that are set. Dynamic values of this broker take precedence over dynamic defaults of all
    brokers, and those over static values."""

    log: LogConfig = field(default_factory=LogConfig)
    """The static log settings; part of `static` without being given there."""
    static: Texts = field(default_factory=dict)
    dynamic_default: Texts = field(default_factory=dict)
    dynamic: Texts = field(default_factory=dict)
    is_encrypted: bool = True
    """Whether data at rest is encrypted here."""

    def __post_init__(self) -> None:
        force_setattr(self, "static", {**static_log_settings(self.log), **self.static})

    @cached_property
    def topic_values(self) -> Mapping[str, Value]:
        """The value of every topic config for a topic without configs."""
        values = _defaults() | values_of(self.log)
        for name, text in self.static.items():
            if (topic_name := _FOLLOWERS.get(name)) is not None:
                values[topic_name] = parse_unruled(TOPIC_DEFINITIONS[topic_name], text)
        for layer in (self.dynamic_default, self.dynamic):
            values |= usable({_FOLLOWERS[name]: text for name, text in layer.items() if name in _FOLLOWERS})
        return values

    @cached_property
    def topic_defaults(self) -> TopicConfig:
        return build(self._log_now(), self.topic_values)

    @classmethod
    def of(
        cls, view: CatalogView, node_id: int, log: LogConfig, static: Texts, *, is_encrypted: bool = True
    ) -> BrokerConfigs:
        """The broker configs stored in the catalog; must be called again when they change."""
        return cls(
            log=log,
            static=static,
            dynamic_default=_stored(view, CLUSTER_DEFAULT),
            dynamic=_stored(view, ConfigResource(ConfigScope.BROKER, str(node_id))),
            is_encrypted=is_encrypted,
        )

    def topic_config(self, overrides: Texts) -> TopicConfig:
        """The effective configs of a topic with these overrides."""
        if not overrides:
            return self.topic_defaults
        return build(self.topic_defaults.log, {**self.topic_values, **usable(overrides)})

    def _log_now(self) -> LogConfig:
        """The log settings that can be changed at run time, for all topics but not for a single one."""
        text = self.dynamic.get(PRODUCER_ID_EXPIRATION, self.dynamic_default.get(PRODUCER_ID_EXPIRATION))
        if text is None:
            return self.log
        try:
            expiration_ms = parse(broker_definitions()[PRODUCER_ID_EXPIRATION], text)
        except InvalidConfig:
            return self.log
        return replace(self.log, producer_id_expiration_ms=cast("int", expiration_ms))

    def layers(self) -> Iterator[tuple[ConfigSource, Texts]]:
        yield ConfigSource.DYNAMIC_BROKER_CONFIG, self.dynamic
        yield ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.dynamic_default
        yield ConfigSource.STATIC_BROKER_CONFIG, self.static


def static_log_settings(log: LogConfig) -> dict[str, str]:
    """The broker configs whose value in this LogConfig differs from the default."""
    settings = {}
    for name, value in values_of(log).items():
        definition = TOPIC_DEFINITIONS[name]
        if definition.broker_name is not None and value != definition.default:
            settings[definition.broker_name] = to_text(value)
    if log.producer_id_expiration_ms != LogConfig().producer_id_expiration_ms:
        settings[PRODUCER_ID_EXPIRATION] = str(log.producer_id_expiration_ms)
    return settings


def _defaults() -> dict[str, Value]:
    return {one.name: one.default for one in TOPIC_DEFINITIONS.values() if one.default is not None}


def _stored(view: CatalogView, resource: ConfigResource) -> Texts:
    held = view.configs.get(resource)
    return {} if held is None else held.configs
