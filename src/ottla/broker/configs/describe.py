"""Configs as DescribeConfigs returns them: each value with its source and synonyms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from ottla.broker.configs.definition import ConfigType
from ottla.broker.configs.definitions import TOPIC_DEFINITIONS, broker_definitions, group_definitions
from ottla.broker.configs.layers import BrokerConfigs, ConfigSource
from ottla.broker.configs.values import to_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ottla.broker.configs.definition import Definition
    from ottla.broker.configs.layers import Texts


class Synonym(Struct, frozen=True):
    """The effective value, or a value that would be effective if the ones before it were not set."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(Struct, frozen=True, kw_only=True):
    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType
    synonyms: tuple[Synonym, ...]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


def describe_topic(overrides: Texts, broker: BrokerConfigs, keys: Collection[str] | None = None) -> list[ConfigEntry]:
    """All configs of a topic, or the requested ones. Without keys all are returned, as for an empty list in
    Kafka; unknown keys are ignored."""
    described = []
    for definition in TOPIC_DEFINITIONS.values():
        name = definition.name
        if (keys and name not in keys) or (definition.is_hidden and name not in overrides):
            continue
        synonyms = [Synonym(name, overrides[name], ConfigSource.DYNAMIC_TOPIC_CONFIG)] if name in overrides else []
        if definition.broker_name is not None:
            synonyms += _broker_synonyms(broker_definitions()[definition.broker_name], broker)
        described.append(_entry(definition, synonyms))
    return described + _unknown(overrides, TOPIC_DEFINITIONS, ConfigSource.DYNAMIC_TOPIC_CONFIG, keys)


def describe_broker(broker: BrokerConfigs, keys: Collection[str] | None = None) -> list[ConfigEntry]:
    """All configs of this broker, or the requested ones."""
    described = []
    for definition in broker_definitions().values():
        synonyms = _broker_synonyms(definition, broker)
        is_set = any(one.source is not ConfigSource.DEFAULT_CONFIG for one in synonyms)
        if (keys and definition.name not in keys) or (definition.is_hidden and not is_set):
            continue
        described.append(_entry(definition, synonyms))
    unknown: dict[str, ConfigEntry] = {}
    for source, layer in broker.layers():
        if source is not ConfigSource.STATIC_BROKER_CONFIG:
            for entry in _unknown(layer, broker_definitions(), source, keys):
                first = unknown.setdefault(entry.name, entry)
                if first is not entry:
                    unknown[entry.name] = structs.replace(first, synonyms=(*first.synonyms, *entry.synonyms))
    return [*described, *unknown.values()]


def describe_cluster_default(broker: BrokerConfigs, keys: Collection[str] | None = None) -> list[ConfigEntry]:
    """Describe the dynamic defaults of all brokers only: the broker resource without a name."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    described = []
    for definition in broker_definitions().values():
        text = broker.dynamic_default.get(definition.name)
        if text is not None and (not keys or definition.name in keys):
            described.append(_entry(definition, [Synonym(definition.name, text, source)]))
    return described + _unknown(broker.dynamic_default, broker_definitions(), source, keys)


def describe_group(overrides: Texts, broker: BrokerConfigs, keys: Collection[str] | None = None) -> list[ConfigEntry]:
    """All configs of a group, or the requested ones."""
    described = []
    for definition in group_definitions().values():
        name = definition.name
        if keys and name not in keys:
            continue
        synonyms = [Synonym(name, overrides[name], ConfigSource.DYNAMIC_GROUP_CONFIG)] if name in overrides else []
        if definition.broker_name is not None:
            synonyms += _broker_synonyms(broker_definitions()[definition.broker_name], broker)
        described.append(_entry(definition, synonyms))
    return described + _unknown(overrides, group_definitions(), ConfigSource.DYNAMIC_GROUP_CONFIG, keys)


def _broker_synonyms(definition: Definition, broker: BrokerConfigs) -> list[Synonym]:
    """The synonyms as Kafka lists them: layer by layer, and only from where the config itself is set.

    So log.retention.hours is listed as a synonym of log.retention.ms only if that has a value, and then last.
    """
    names = (definition.name, *definition.fallbacks)
    found = [Synonym(name, layer[name], source) for source, layer in broker.layers() for name in names if name in layer]
    found += _defaults(names)
    first = next((at for at, one in enumerate(found) if one.name == definition.name), len(found))
    return found[first:]


def _defaults(names: Sequence[str]) -> Iterator[Synonym]:
    for name in names:
        default = broker_definitions()[name].default
        if default is not None:
            yield Synonym(name, to_text(default), ConfigSource.DEFAULT_CONFIG)


def _entry(definition: Definition, synonyms: Sequence[Synonym]) -> ConfigEntry:
    default = None if definition.default is None else to_text(definition.default)
    first = synonyms[0] if synonyms else Synonym(definition.name, default, ConfigSource.DEFAULT_CONFIG)
    is_sensitive = definition.is_sensitive
    return ConfigEntry(
        name=definition.name,
        value=None if is_sensitive else first.value,
        source=first.source,
        is_read_only=definition.is_read_only,
        is_sensitive=is_sensitive,
        type=definition.type,
        synonyms=tuple(_masked(one) for one in synonyms) if is_sensitive else tuple(synonyms),
        documentation=definition.documentation,
    )


def _unknown(
    stored: Texts, known: Collection[str], source: ConfigSource, keys: Collection[str] | None
) -> list[ConfigEntry]:
    """Configs that are set but not defined, from a Kafka plug-in or another release. They are listed so that they can
    be deleted, but without their values, which may be passwords.
    """
    return [
        ConfigEntry(
            name=name,
            value=None,
            source=source,
            is_read_only=True,
            is_sensitive=True,
            type=ConfigType.UNKNOWN,
            synonyms=(Synonym(name, None, source),),
            documentation=None,
        )
        for name in sorted(stored)
        if name not in known and (not keys or name in keys)
    ]


def _masked(synonym: Synonym) -> Synonym:
    return Synonym(synonym.name, None, synonym.source)
