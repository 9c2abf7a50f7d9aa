"""Topics as rows: what the listing and the description of a topic show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ottla.cli.tables import counted
from ottla.core.ids import TopicId, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.cli.offsets.resets import Bounds
    from ottla.client.admin.configs import ConfigEntry
    from ottla.client.view import PartitionView, TopicView

TOPIC_COLUMNS: Final = ("topic", "partitions", "replicas", "problems")
PARTITION_COLUMNS: Final = ("partition", "leader", "replicas", "in_sync", "first", "next", "messages")
CONFIG_COLUMNS: Final = ("setting", "value", "source")


def topic_row(topic: TopicView) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replicas": max((len(each.replicas) for each in topic.partitions.values()), default=0),
        "problems": problems(topic),
        "internal": topic.is_internal,
    }


def problems(topic: TopicView) -> str | None:
    """A short description of its partitions' problems."""
    leaderless = sum(each.leader < 0 for each in topic.partitions.values())
    lagging = sum(is_under_replicated(each) for each in topic.partitions.values())
    said = []
    if leaderless:
        said.append(f"{leaderless} without a leader")
    if lagging:
        said.append(f"{lagging} under-replicated")
    return ", ".join(said) or None


def is_under_replicated(partition: PartitionView) -> bool:
    return len(partition.isr) < len(partition.replicas)


def partition_row(index: int, partition: PartitionView, bounds: Bounds | None) -> dict[str, Any]:
    return {
        "partition": index,
        "leader": partition.leader if partition.leader >= 0 else None,
        "replicas": list(partition.replicas),
        "in_sync": list(partition.isr),
        "first": None if bounds is None else bounds.first,
        "next": None if bounds is None else bounds.end,
        "messages": None if bounds is None else bounds.end - bounds.first,
    }


def config_rows(entries: Iterable[ConfigEntry], *, include_defaults: bool) -> list[dict[str, Any]]:
    return [
        {
            "setting": entry.name,
            "value": "********" if entry.is_sensitive else entry.value,
            "source": entry.source.name.lower().removesuffix("_config"),
            "read_only": entry.is_read_only,
        }
        for entry in sorted(entries, key=lambda entry: entry.name)
        if include_defaults or not entry.is_default
    ]


class DescribedTopic(Struct, frozen=True):
    view: TopicView
    bounds: Mapping[TopicPartition, Bounds]
    configs: Mapping[str, ConfigEntry]

    def partition_rows(self) -> list[dict[str, Any]]:
        return [
            partition_row(index, partition, self.bounds.get(TopicPartition(self.view.name, index)))
            for index, partition in self.view.partitions.items()
        ]

    def heading(self) -> str:
        row = topic_row(self.view)
        return (
            f"{self.view.name}: {counted(row['partitions'], 'partition')}, "
            f"replication factor {row['replicas']}, {counted(self._messages(), 'message')}"
        )

    def as_json(self, *, include_defaults: bool) -> dict[str, Any]:
        return {
            "topic": self.view.name,
            "id": _id_text(self.view.topic_id),
            "internal": self.view.is_internal,
            "messages": self._messages(),
            "partitions": self.partition_rows(),
            "configs": config_rows(self.configs.values(), include_defaults=include_defaults),
        }

    def _messages(self) -> int:
        return sum(each.end - each.first for each in self.bounds.values())


def _id_text(raw: bytes) -> str | None:
    """None from a broker that is too old for ids."""
    import uuid

    return TopicId(uuid.UUID(bytes=bytes(raw))).text if any(raw) else None
