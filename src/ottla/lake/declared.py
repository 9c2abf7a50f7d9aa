"""Topics that declare a table by their configs: `ottla.table.enable` and related ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.columns.partitioning import parse_partitioning
from ottla.core.errors import ErrorCode
from ottla.lake.values import FORMATS, ValueSettings
from ottla.lake.writer import TopicSettings
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.client.blocking.background import Background

ENABLE: Final = "ottla.table.enable"
_PREFIX: Final = "ottla.table."
_TOPIC_RESOURCE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTables:
    """Finds them, and has what their configs do not say."""

    namespace: str
    registry: str = ""

    def find(self, link: Background) -> list[TopicSettings]:
        router = link.client.router
        link.call(router.refresh(None))
        names = [
            view.name
            for view in router.view.topics.values()
            if view.error is ErrorCode.NONE and not view.is_internal and 0 in view.partitions
        ]
        enabled = [name for name, given in _configs(link, names, (ENABLE,)).items() if given.get(ENABLE) == "true"]
        return self.declared(_configs(link, enabled, None))

    def declared(self, configs: Mapping[str, Mapping[str, str]]) -> list[TopicSettings]:
        """The tables of topics with these configs; defaults may be missing."""
        return [
            self._settings(topic, {name.removeprefix(_PREFIX): value for name, value in given.items()})
            for topic, given in configs.items()
            if given.get(ENABLE) == "true"
        ]

    def _settings(self, topic: str, given: Mapping[str, str]) -> TopicSettings:
        format_ = next(each for each in FORMATS if each == given.get("values", "raw"))
        return TopicSettings(
            topic=topic,
            mode="upsert" if given.get("mode") == "upsert" else "append",
            namespace=self.namespace,
            values=ValueSettings(
                format=format_,
                columns=given.get("columns", "") if format_ == "json" else "",
                registry=self.registry if format_ == "registry" else "",
                subject=given.get("subject", "") if format_ == "registry" else "",
            ),
            partition_by=parse_partitioning(given.get("partition.by", "")),
            allows_gaps=given.get("allow.gaps") == "true",
            interval_s=int(given.get("commit.interval.ms", "10000")) / 1000,
        )


def _configs(link: Background, topics: Iterable[str], only: tuple[str, ...] | None) -> dict[str, dict[str, str]]:
    resources = tuple(
        DescribeConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=each, configuration_keys=only)
        for each in topics
    )
    if not resources:
        return {}
    response = link.call(link.client.router.ask(DescribeConfigsRequest(resources=resources)))
    return {
        each.resource_name: {config.name: config.value or "" for config in each.configs}
        for each in response.results
        if each.error_code == ErrorCode.NONE
    }
