"""Options of the source, as in Spark's Kafka connector. Pure rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError
from ottla.spark.kafka_settings import truth, whole_number
from ottla.spark.reader.offsets import EARLIEST, LATEST, Bound, parse_offsets, parse_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.core.ids import TopicPartition

_SELECTIONS: Final = ("assign", "subscribe", "subscribepattern")
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|h|milliseconds?|seconds?|minutes?|hours?)?")
_UNIT_MS: Final = {"m": 60_000, "h": 3_600_000, "s": 1000, "ms": 1}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which topics and partitions are read."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def matches(self, topic: str) -> bool:
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics or any(at.topic == topic for at in self.partitions)

    def takes(self, at: TopicPartition) -> bool:
        return at in self.partitions if self.partitions else self.matches(at.topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    selection: Selection
    starting: Bound
    ending: Bound
    kafka: dict[str, str]
    """`kafka.*`, without the prefix."""
    path: str | None = None
    archive: str | None = None
    fail_on_data_loss: bool = True
    push_filters: bool = False
    """Only for a DataFrame that is used once: Spark applies pushed filters to every use of the same DataFrame."""
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    poll_timeout_s: float = 120.0

    @property
    def servers(self) -> str:
        return self.kafka["bootstrap.servers"]

    @property
    def group(self) -> str | None:
        return self.kafka.get("group.id")


def kafka_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the prefix `kafka.`, without the prefix."""
    found = _after_kafka(options)
    if not found.get("bootstrap.servers"):
        raise ConfigError("kafka.bootstrap.servers must be set, such as localhost:9092")
    return found


def _after_kafka(options: Mapping[str, str]) -> dict[str, str]:
    lower = {name.lower(): value for name, value in options.items()}
    return {name.removeprefix("kafka."): value for name, value in lower.items() if name.startswith("kafka.")}


def parse_source(given: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    options = {name.lower(): value for name, value in given.items()}
    path = options.get("path")
    if path is not None and is_stream:
        raise ConfigError("option path is only for batch reads; a stream needs kafka.bootstrap.servers")
    if path is not None and "archive" in options:
        raise ConfigError("options archive and path exclude each other: path reads files without a broker")
    if is_stream:
        _refuse_endings(options)
    return SourceOptions(
        selection=_selection(options),
        starting=_starting(options, is_stream=is_stream),
        ending=_ending(options),
        kafka=kafka_settings(options) if path is None else _after_kafka(options),
        path=path,
        archive=options.get("archive"),
        fail_on_data_loss=truth("failOnDataLoss", options.get("failondataloss", "true")),
        push_filters=truth("pushFilters", options.get("pushfilters", "false")),
        min_partitions=_number(options, "minPartitions"),
        max_records_per_partition=_number(options, "maxRecordsPerPartition"),
        max_offsets_per_trigger=_number(options, "maxOffsetsPerTrigger"),
        min_offsets_per_trigger=_number(options, "minOffsetsPerTrigger"),
        poll_timeout_s=(_number(options, "kafkaConsumer.pollTimeoutMs") or 120_000) / 1000,
        max_trigger_delay_ms=_duration_ms("maxTriggerDelay", options.get("maxtriggerdelay", "15m")),
    )


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    return None if text is None else whole_number(name, text)


def _selection(options: Mapping[str, str]) -> Selection:
    given = [name for name in _SELECTIONS if options.get(name, "").strip()]
    if len(given) != 1:
        raise ConfigError(
            f"exactly one of subscribe, subscribePattern and assign must be set, got {' and '.join(given) or 'none'}"
        )
    text = options[given[0]]
    if given[0] == "assign":
        return Selection(partitions=parse_partitions(text, "assign"))
    if given[0] == "subscribe":
        return Selection(topics=tuple(sorted({name.strip() for name in text.split(",") if name.strip()})))
    try:
        re.compile(text)
    except re.error as bad:
        raise ConfigError(f"subscribePattern {text!r} is not a valid regular expression: {bad}") from None
    return Selection(pattern=text)


def _starting(options: Mapping[str, str], *, is_stream: bool) -> Bound:
    strategy = options.get("startingoffsetsbytimestampstrategy", "error")
    if strategy not in ("error", "latest"):
        raise ConfigError(f"startingOffsetsByTimestampStrategy must be error or latest, got {strategy!r}")
    bound = _bound(options, "starting", "latest" if is_stream else "earliest", is_lenient=strategy == "latest")
    says_latest = not bound.is_time and LATEST in (bound.everywhere, *bound.by_partition.values())
    if not is_stream and says_latest:
        raise ConfigError("startingOffsets cannot be latest in a batch read: there is nothing after the end")
    return bound


def _ending(options: Mapping[str, str]) -> Bound:
    bound = _bound(options, "ending", "latest", is_lenient=True)
    if not bound.is_time and EARLIEST in (bound.everywhere, *bound.by_partition.values()):
        raise ConfigError("endingOffsets cannot be earliest: there is nothing before the beginning")
    return bound


def _refuse_endings(options: Mapping[str, str]) -> None:
    for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
        if name.lower() in options:
            raise ConfigError(f"{name} is only for batch reads; a stream has no end")


def _bound(options: Mapping[str, str], which: str, default: str, *, is_lenient: bool) -> Bound:
    """The most specific of the three options, in the connector's order."""
    at_time, by_time, by_offset = f"{which}Timestamp", f"{which}OffsetsByTimestamp", f"{which}Offsets"
    if (text := options.get(at_time.lower())) is not None:
        time_ms = whole_number(at_time, text, least=0)
        return Bound(at_time, is_time=True, everywhere=time_ms, falls_back_to_latest=is_lenient)
    if (text := options.get(by_time.lower())) is not None:
        return Bound(by_time, is_time=True, by_partition=parse_offsets(text, by_time), falls_back_to_latest=is_lenient)
    text = options.get(by_offset.lower(), default).strip()
    if text.lower() in ("earliest", "latest"):
        return Bound(by_offset, everywhere=EARLIEST if text.lower() == "earliest" else LATEST)
    return Bound(by_offset, by_partition=parse_offsets(text, by_offset))


def _duration_ms(option: str, text: str) -> int:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ConfigError(f"{option} must be a duration such as 15m or 30s, got {text!r}")
    unit = match[2] or "s"
    return int(match[1]) * _UNIT_MS["ms" if unit.startswith(("ms", "milli")) else unit[0]]
