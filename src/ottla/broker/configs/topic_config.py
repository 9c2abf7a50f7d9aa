"""The effective settings of a topic: a LogConfig for its logs, and the other settings of the broker.

A topic has the broker's values except for those that it overrides. Kafka's settings are translated to LogConfig as
follows:

    flush.messages, flush.ms   `flush` is "ack" if there is a limit in messages, else "interval" if there is one in
                               time, else "os"
    cleanup.policy             empty deletes nothing: "delete" without a limit
    max.compaction.lag.ms      a compacted topic rolls segments at least this often: the active one is never compacted
    retention.bytes            every negative number is -1
    segment.index.bytes        at least 1024; Kafka accepts 4, and rounds it down to no entries
    internal.segment.bytes     replaces segment.bytes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from ottla.broker.configs.definitions import TOPIC_DEFINITIONS
from ottla.broker.configs.values import parse, split_list
from ottla.core.errors import InvalidConfig
from ottla.storage.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.broker.configs.definition import Value
    from ottla.storage.config import CleanupPolicy

CompressionType = Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]

_NEVER: Final = (1 << 63) - 1
_LEAST_INDEX_BYTES: Final = 1024
_COMPRESSION_LEVELS: Final = ("gzip", "lz4", "zstd")


class SchemaRule(Struct, frozen=True):
    """How records are validated by their schema ids."""

    key: str | None
    """The subject name strategy, without its package; None if keys are not validated."""
    value: str | None
    dead_letters: str
    """The dead-letter topic; empty if invalid records are rejected."""


class TopicConfig(Struct, frozen=True, kw_only=True):
    """The topic settings that its leader uses."""

    log: LogConfig
    compression_type: CompressionType
    compression_level: int | None
    """None if the level is not configurable (producer, uncompressed, snappy)."""
    min_insync_replicas: int
    leader_replication_throttled_replicas: tuple[str, ...]
    follower_replication_throttled_replicas: tuple[str, ...]
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float
    schemas: SchemaRule | None = None
    has_table: bool = False
    """Whether `ottla lake` maintains it as an Iceberg table."""

    @property
    def keeps_batches(self) -> bool:
        """Whether batches are appended unchanged."""
        return self.compression_type == "producer" and self.log.cleanup_policy == "delete" and self.schemas is None


def _named_after_configs(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The fields named like a topic config, except for the dots, and that config's name."""
    named = ((name, name.replace("_", ".")) for name in names)
    return tuple((field, key) for field, key in named if key in TOPIC_DEFINITIONS)


_LOG_KEYS: Final = _named_after_configs(LogConfig.__struct_fields__)
_TOPIC_KEYS: Final = _named_after_configs(TopicConfig.__struct_fields__)


def build(log: LogConfig, values: Mapping[str, Value]) -> TopicConfig:
    """Build from a value for every topic config; `log` supplies settings that are not topic configs."""
    settings: dict[str, Any] = {field: values[key] for field, key in _TOPIC_KEYS}
    codec = values["compression.type"]
    level = _integer(values, f"compression.{codec}.level") if codec in _COMPRESSION_LEVELS else None
    return TopicConfig(
        log=_log_config(log, values),
        compression_level=level,
        schemas=_schema_rule(values),
        has_table=bool(values["ottla.table.enable"]),
        **settings,
    )


def _schema_rule(values: Mapping[str, Value]) -> SchemaRule | None:
    key, value = (
        str(values[f"confluent.{part}.subject.name.strategy"]).rpartition(".")[2]
        if values[f"confluent.{part}.schema.validation"]
        else None
        for part in ("key", "value")
    )
    if key is None and value is None:
        return None
    return SchemaRule(key, value, str(values["ottla.schema.validation.dead.letter.topic"]))


def _log_config(log: LogConfig, values: Mapping[str, Value]) -> LogConfig:
    settings: dict[str, Any] = {field: values[key] for field, key in _LOG_KEYS}
    settings["segment_bytes"] = values.get("internal.segment.bytes", settings["segment_bytes"])
    settings["segment_index_bytes"] = max(settings["segment_index_bytes"], _LEAST_INDEX_BYTES)
    settings["retention_bytes"] = max(settings["retention_bytes"], -1)
    policies = settings["cleanup_policy"]
    settings["cleanup_policy"] = _policy(policies)
    if not policies:
        settings["retention_ms"] = settings["retention_bytes"] = -1
    if "compact" in policies:
        settings["segment_ms"] = min(settings["segment_ms"], _integer(values, "max.compaction.lag.ms"))
    return replace(log, **settings, **_flush(values))


def _policy(policies: tuple[str, ...]) -> CleanupPolicy:
    if "compact" in policies:
        return "compact,delete" if "delete" in policies else "compact"
    return "delete"


def _flush(values: Mapping[str, Value]) -> dict[str, Any]:
    if values["flush.messages"] != _NEVER:
        return {"flush": "ack"}
    interval_ms = _integer(values, "flush.ms")
    if interval_ms == _NEVER:
        return {"flush": "os"}
    return {"flush": "interval", "flush_interval_ms": max(1, interval_ms)}


def values_of(log: LogConfig) -> dict[str, Value]:
    """A LogConfig as topic configs."""
    values: dict[str, Value] = {key: getattr(log, field) for field, key in _LOG_KEYS}
    values["cleanup.policy"] = split_list(log.cleanup_policy)
    values["flush.messages"] = 1 if log.flush == "ack" else _NEVER
    values["flush.ms"] = log.flush_interval_ms if log.flush == "interval" else _NEVER
    return values


def usable(overrides: Mapping[str, str]) -> dict[str, Value]:
    """The stored configs without unusable ones.

    They were checked before they were stored, but a value that a later release rejects must not keep that release from
    starting.
    """
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        definition = TOPIC_DEFINITIONS.get(name)
        if definition is not None:
            try:
                values[name] = parse(definition, text)
            except InvalidConfig:
                continue
    return values


def unusable(overrides: Mapping[str, str]) -> list[str]:
    """Stored configs without effect, for the log."""
    used = usable(overrides)
    return [f"{name}={text}" for name, text in overrides.items() if name not in used]


def conflict(values: Mapping[str, Value], *, is_encrypted: bool = True) -> str | None:
    """The conflict between individually valid values, if any."""
    if values["encryption.key.version"] and not is_encrypted:
        return "encryption.key.version needs encryption at rest (encryption.key_file)"
    least, most = _integer(values, "min.compaction.lag.ms"), _integer(values, "max.compaction.lag.ms")
    if least > most:
        return f"min.compaction.lag.ms ({least}) must not be more than max.compaction.lag.ms ({most})"
    return _table_conflict(values) if values["ottla.table.enable"] else None


def _table_conflict(values: Mapping[str, Value]) -> str | None:
    if values["ottla.table.values"] == "json" and not values["ottla.table.columns"]:
        return "ottla.table.values=json needs ottla.table.columns, such as id bigint, name string"
    return None


def _integer(values: Mapping[str, Value], name: str) -> int:
    return cast("int", values[name])
