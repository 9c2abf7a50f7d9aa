"""Configs of topics, brokers and groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from ottla.client.admin.requests import AdminRequests
from ottla.client.errors import raise_for
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.wire.codec import RequestFor


class ConfigKind(IntEnum):
    TOPIC = 2
    BROKER = 4
    GROUP = 32


class ConfigSource(IntEnum):
    """The source of a value, with Kafka's names."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8

    @classmethod
    def _missing_(cls, value: object) -> ConfigSource:  # noqa: ARG003 - one that is newer than this client
        return cls.UNKNOWN


class _Change(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """The resource of a config: `ConfigResource.topic("orders")`."""

    kind: ConfigKind
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        return cls(ConfigKind.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int | None = None) -> ConfigResource:
        """One broker; None for the cluster-wide default."""
        return cls(ConfigKind.BROKER, "" if node_id is None else str(node_id))

    @classmethod
    def group(cls, name: str) -> ConfigResource:
        return cls(ConfigKind.GROUP, name)

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} {self.name!r}"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    """None if it is unset or sensitive."""
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


class ConfigAdmin(AdminRequests):
    async def describe_configs(
        self, resource: ConfigResource, names: Iterable[str] | None = None, *, with_documentation: bool = False
    ) -> dict[str, ConfigEntry]:
        """The configs by name: the given ones, or all."""
        asked = DescribeConfigsResource(
            resource_type=resource.kind,
            resource_name=resource.name,
            configuration_keys=None if names is None else tuple(names),
        )
        request = DescribeConfigsRequest(resources=(asked,), include_documentation=with_documentation)
        response: DescribeConfigsResponse = await self._router.ask(request, node_id=self._broker_of(resource))
        [result] = response.results
        raise_for(result.error_code, f"cannot describe {resource}", result.error_message)
        return {
            each.name: ConfigEntry(
                name=each.name,
                value=each.value,
                source=ConfigSource(each.config_source),
                is_read_only=each.read_only,
                is_sensitive=each.is_sensitive,
                documentation=each.documentation,
            )
            for each in result.configs
        }

    async def alter_configs(
        self,
        resource: ConfigResource,
        change: Mapping[str, str] | None = None,
        *,
        delete: Iterable[str] = (),
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Set, delete, append to or subtract from single configs; others are unchanged."""
        changes = (
            *_changes(_Change.SET, change),
            *(AlterableConfig(name=name, config_operation=_Change.DELETE, value=None) for name in delete),
            *_changes(_Change.APPEND, append),
            *_changes(_Change.SUBTRACT, subtract),
        )
        altered = AlterConfigsResource(resource_type=resource.kind, resource_name=resource.name, configs=changes)
        request = IncrementalAlterConfigsRequest(resources=(altered,), validate_only=validate_only)
        response = await self._alter(resource, request)
        [result] = response.responses
        raise_for(result.error_code, f"cannot alter {resource}", result.error_message)

    async def _alter(
        self, resource: ConfigResource, request: RequestFor[IncrementalAlterConfigsResponse]
    ) -> IncrementalAlterConfigsResponse:
        if (node_id := self._broker_of(resource)) is not None:
            return await self._router.ask(request, node_id=node_id)
        return await self._ask_controller(request, lambda answer: (each.error_code for each in answer.responses))

    def _broker_of(self, resource: ConfigResource) -> int | None:
        """The broker to send to: that broker for its configs, any broker for all others."""
        is_one_broker = resource.kind is ConfigKind.BROKER and resource.name.isdigit()
        return int(resource.name) if is_one_broker else None


def _changes(change: _Change, values: Mapping[str, str] | None) -> Iterable[AlterableConfig]:
    return (AlterableConfig(name=name, config_operation=change, value=value) for name, value in (values or {}).items())
