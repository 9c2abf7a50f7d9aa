"""Changes to configs: the old map in, the new one out; on errors nothing is changed.

    topic_resource(broker)                 the altered resource
    broker_resource(broker)
    cluster_default_resource(broker)
    group_resource(groups)
        incremental_edit(resource, …)      IncrementalAlterConfigs: set, delete, append to, subtract from single configs
        replacing_edit(resource, …)        AlterConfigs: these configs and no others
    new_topic_configs(broker, …)           CreateTopics

Errors: InvalidConfig for an unknown config (of a topic or a group) or an invalid value; InvalidRequest, as in Kafka,
for a malformed request, for a read-only config, and for invalid values of broker configs. Only new values are checked,
so a value from an older release can always be deleted and never blocks the change of another one. Values are stored in
their normal form.

A validate-only request is an edit that is not committed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ottla.broker.configs.definition import ConfigType
from ottla.broker.configs.definitions import TOPIC_DEFINITIONS, broker_definitions, group_definitions
from ottla.broker.configs.topic_config import conflict, usable
from ottla.broker.configs.values import find, normalised, split_list, to_text
from ottla.broker.coordinators.group_configs import problem_with
from ottla.core.errors import ApiError, InvalidConfig, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ottla.broker.configs.definition import Definition, Definitions
    from ottla.broker.configs.layers import BrokerConfigs, Texts
    from ottla.groups.config import GroupConfig
    from ottla.storage.catalog.catalog import Edit
    from ottla.wire.messages import alter_configs, create_topics, incremental_alter_configs


class Operation(IntEnum):
    """As IncrementalAlterConfigs numbers them."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS: Final = ", ".join(f"{one.name} ({one.value})" for one in Operation)


class Alteration(Struct, frozen=True):
    operation: Operation
    name: str
    text: str = ""


class Resource(Struct, frozen=True, kw_only=True):
    """A resource with configs: their definitions and constraints."""

    kind: str
    definitions: Definitions
    refusal: type[ApiError]
    """The error for an invalid value."""
    inherited: Callable[[Definition], str]
    """The list value of an unset config, to append to or subtract from."""
    problem: Callable[[Texts], str | None]
    """The conflict between individually valid configs, if any."""
    takes_unknown: bool = False
    """Whether undefined configs can be set, without effect: Kafka keeps those of brokers for plug-ins."""

    def changed(self, old: Texts, alterations: Iterable[Alteration]) -> dict[str, str]:
        new = dict(old)
        for alteration in alterations:
            if alteration.operation is Operation.DELETE:
                new.pop(alteration.name, None)
            else:
                new[alteration.name] = self._altered(new, alteration)
        if (problem := self.problem(new)) is not None:
            raise self.refusal(problem)
        return new

    def _altered(self, old: Texts, alteration: Alteration) -> str:
        if self.takes_unknown and alteration.operation is Operation.SET and alteration.name not in self.definitions:
            return alteration.text
        definition = find(self.definitions, self.kind, alteration.name)
        if definition.is_read_only:
            raise InvalidRequest(f"{definition.name} cannot be changed at run time")
        text = alteration.text
        if alteration.operation is not Operation.SET:
            if definition.type is not ConfigType.LIST:
                verb = "append to" if alteration.operation is Operation.APPEND else "subtract from"
                raise InvalidConfig(
                    f"Cannot {verb} {definition.name}: it is not a list but of type {definition.type.name}"
                )
            known = old[definition.name] if definition.name in old else self.inherited(definition)
            text = _combined(known, alteration)
        try:
            return normalised(definition, text)
        except InvalidConfig as invalid:
            raise self.refusal(str(invalid)) from None


def topic_resource(broker: BrokerConfigs) -> Resource:
    return Resource(
        kind="topic",
        definitions=TOPIC_DEFINITIONS,
        refusal=InvalidConfig,
        inherited=lambda definition: to_text(broker.topic_values[definition.name]),
        problem=lambda texts: conflict({**broker.topic_values, **usable(texts)}, is_encrypted=broker.is_encrypted),
    )


def broker_resource(broker: BrokerConfigs) -> Resource:
    """The configs of this broker alone."""
    return Resource(
        kind="broker",
        definitions=broker_definitions(),
        refusal=InvalidRequest,
        inherited=lambda definition: _inherited(definition, broker.dynamic_default, broker.static),
        problem=lambda texts: conflict(replace(broker, dynamic=texts).topic_values),
        takes_unknown=True,
    )


def cluster_default_resource(broker: BrokerConfigs) -> Resource:
    """The configs of all brokers: the broker resource without a name."""
    return Resource(
        kind="broker",
        definitions=broker_definitions(),
        refusal=InvalidRequest,
        inherited=lambda definition: _inherited(definition, broker.static),
        problem=lambda texts: conflict(replace(broker, dynamic_default=texts).topic_values),
        takes_unknown=True,
    )


def group_resource(groups: GroupConfig) -> Resource:
    return Resource(
        kind="group",
        definitions=group_definitions(),
        refusal=InvalidConfig,
        inherited=lambda definition: "" if definition.default is None else to_text(definition.default),
        problem=lambda texts: problem_with(texts, groups),
    )


def incremental_edit(resource: Resource, configs: Sequence[incremental_alter_configs.AlterableConfig]) -> Edit[str]:
    """InvalidRequest at once if a config is named twice, or an operation is unknown or lacks its value."""
    _refuse_repetitions(config.name for config in configs)
    alterations = [_alteration(config) for config in configs]
    return lambda old: resource.changed(old, alterations)


def replacing_edit(resource: Resource, configs: Sequence[alter_configs.AlterableConfig]) -> Edit[str]:
    """InvalidRequest at once if a config is named twice or has no value."""
    _refuse_repetitions(config.name for config in configs)
    settings = []
    for config in configs:
        if config.value is None:
            raise InvalidRequest(f"{config.name} cannot be null; omit it to reset it to its default")
        settings.append(Alteration(Operation.SET, config.name, config.value))
    return lambda _old: resource.changed({}, settings)


def new_topic_configs(broker: BrokerConfigs, configs: Iterable[create_topics.CreatableTopicConfig]) -> dict[str, str]:
    """If a config is given twice, the last one is used, as in Kafka."""
    settings = []
    for name, value in {config.name: config.value for config in configs}.items():
        if value is None:
            raise InvalidConfig(f"{name} cannot be null; omit it to use its default")
        settings.append(Alteration(Operation.SET, name, value))
    return topic_resource(broker).changed({}, settings)


def _alteration(config: incremental_alter_configs.AlterableConfig) -> Alteration:
    try:
        operation = Operation(config.config_operation)
    except ValueError:
        raise InvalidRequest(
            f"{config.name} unknown operation {config.config_operation}; use one of {_OPERATIONS}"
        ) from None
    if operation is Operation.DELETE:
        return Alteration(operation, config.name)
    if config.value is None:
        raise InvalidRequest(f"{config.name} cannot be null; {Operation.DELETE.name} resets it to its default")
    return Alteration(operation, config.name, config.value)


def _refuse_repetitions(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidRequest(f"{name} is named more than once")
        seen.add(name)


def _combined(old: str, alteration: Alteration) -> str:
    items, given = split_list(old), split_list(alteration.text)
    if alteration.operation is Operation.SUBTRACT:
        return ",".join(item for item in items if item not in given)
    if not given:
        raise InvalidConfig(f"No value to append to {alteration.name}")
    return ",".join((*items, *given))


def _inherited(definition: Definition, *layers: Texts) -> str:
    for layer in layers:
        if definition.name in layer:
            return layer[definition.name]
    return "" if definition.default is None else to_text(definition.default)
