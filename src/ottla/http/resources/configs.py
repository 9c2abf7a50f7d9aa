"""Configs of topics, groups and the broker, shown and changed in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ottla.broker.configs.layers import ConfigSource
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.http.framework.models import RequestStruct, Struct
from ottla.http.framework.problems import BadRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32
_SET: Final = 0
_DELETE: Final = 1


ConfigValue = str | bool | int | float
"""Kafka's configs are text; JSON numbers and booleans are converted."""


def text_of(value: ConfigValue) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class Config(Struct, frozen=True, kw_only=True):
    name: str
    value: str | None
    """Null if it is unset or sensitive."""
    source: str
    """The source of the value, with Kafka's names: DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG and so on."""
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None


class ConfigList(Struct, frozen=True, kw_only=True):
    configs: list[Config]


class ConfigChanges(RequestStruct, frozen=True, kw_only=True):
    """Configs by name: a new value, or null for the default."""

    configs: dict[str, ConfigValue | None]
    dry_run: bool = False
    """Only validate the request."""


async def described(call: Call, kind: int, name: str) -> ConfigList:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=False, include_documentation=True)
    [result] = (await call.ask(request)).results
    raise_refusal(result.error_code, result.error_message)
    return ConfigList(
        configs=[
            Config(
                name=one.name,
                value=one.value,
                source=ConfigSource(one.config_source).name,
                is_default=one.config_source == ConfigSource.DEFAULT_CONFIG,
                is_read_only=one.read_only,
                is_sensitive=one.is_sensitive,
                documentation=one.documentation,
            )
            for one in result.configs
        ]
    )


async def changed(call: Call, kind: int, name: str, changes: ConfigChanges) -> ConfigList:
    if not changes.configs:
        raise BadRequest("no configs given")
    configs = tuple(
        AlterableConfig(name=config, config_operation=_DELETE, value=None)
        if value is None
        else AlterableConfig(name=config, config_operation=_SET, value=text_of(value))
        for config, value in changes.configs.items()
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=changes.dry_run)
    [result] = (await call.ask(request)).responses
    raise_refusal(result.error_code, result.error_message)
    return await described(call, kind, name)
