"""The effective settings of one share group: the broker's settings, overridden by the group's configs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.share.config import ShareConfig
from ottla.share.partition import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCK_DURATION: Final = "share.record.lock.duration.ms"
DELIVERY_LIMIT: Final = "share.delivery.count.limit"
MOST_LOCKS: Final = "share.partition.max.record.locks"
SESSION_TIMEOUT: Final = "share.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "share.heartbeat.interval.ms"
OFFSET_RESET: Final = "share.auto.offset.reset"
ISOLATION: Final = "share.isolation.level"
RENEWS: Final = "share.renew.acknowledge.enable"
DEAD_LETTERS: Final = "dead.letter.topic"

_USUAL: Final = ShareConfig()

_DURATION: Final = re.compile(
    r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII | re.IGNORECASE
)


class GroupSettings(NamedTuple):
    limits: Limits
    session_timeout_ms: int
    heartbeat_interval_ms: int
    offset_reset: str
    isolation_level: int
    renews: bool
    dead_letter_topic: str


def settings_of(config: ShareConfig, texts: Mapping[str, str]) -> GroupSettings:
    """The settings of a group; its configs were validated when they were set."""

    def number(name: str, otherwise: int) -> int:
        return int(texts.get(name, otherwise))

    dead_letter_topic = texts.get(DEAD_LETTERS, "")
    return GroupSettings(
        limits=Limits(
            lock_ms=number(LOCK_DURATION, config.record_lock_duration_ms),
            deliveries=number(DELIVERY_LIMIT, config.delivery_count_limit),
            in_flight=number(MOST_LOCKS, config.partition_max_record_locks),
            has_dead_letters=bool(dead_letter_topic),
        ),
        session_timeout_ms=number(SESSION_TIMEOUT, config.session_timeout_ms),
        heartbeat_interval_ms=number(HEARTBEAT_INTERVAL, config.heartbeat_interval_ms),
        offset_reset=texts.get(OFFSET_RESET, "latest"),
        isolation_level=int(texts.get(ISOLATION, "") == "read_committed"),
        renews=texts.get(RENEWS, "true") == "true",
        dead_letter_topic=dead_letter_topic,
    )


def problem_with_timing(texts: Mapping[str, str]) -> str | None:
    """Why these group configs conflict, if they do."""
    session_ms = int(texts.get(SESSION_TIMEOUT, _USUAL.session_timeout_ms))
    if session_ms <= int(texts.get(HEARTBEAT_INTERVAL, _USUAL.heartbeat_interval_ms)):
        return f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}"
    return None


def reset_age_ms(text: str) -> int | None:
    """The maximum age of the first records of a new group, if `share.auto.offset.reset` sets one."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def is_offset_reset(text: str) -> bool:
    return text in ("earliest", "latest") or reset_age_ms(text) is not None
