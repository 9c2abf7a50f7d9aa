"""Configs of single groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.groups.consumer.environment import Timing
from ottla.storage.catalog.entries import ConfigResource, ConfigScope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.groups.config import GroupConfig
    from ottla.storage.catalog.view import CatalogView

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"


def problem_with(texts: Mapping[str, str], config: GroupConfig) -> str | None:
    """The problem with these group configs, if any."""
    session_ms = int(texts.get(SESSION_TIMEOUT, config.consumer_session_timeout_ms))
    interval_ms = int(texts.get(HEARTBEAT_INTERVAL, config.consumer_heartbeat_interval_ms))
    least, most = config.consumer_min_session_timeout_ms, config.consumer_max_session_timeout_ms
    if SESSION_TIMEOUT in texts and not least <= session_ms <= most:
        return f"{SESSION_TIMEOUT} must be from {least} to {most}"
    least, most = config.consumer_min_heartbeat_interval_ms, config.consumer_max_heartbeat_interval_ms
    if HEARTBEAT_INTERVAL in texts and not least <= interval_ms <= most:
        return f"{HEARTBEAT_INTERVAL} must be from {least} to {most}"
    if session_ms <= interval_ms:
        return f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}"
    from ottla.share.settings import problem_with_timing  # rarely needed

    return problem_with_timing(texts)


def timing_of(view: CatalogView, config: GroupConfig, group_id: str) -> Timing:
    """The group's value, within the broker's current limits; otherwise the default."""
    held = view.configs.get(ConfigResource(ConfigScope.GROUP, group_id)) if view.configs else None
    if held is None:
        return Timing(config.consumer_session_timeout_ms, config.consumer_heartbeat_interval_ms)
    session_ms = int(held.configs.get(SESSION_TIMEOUT, config.consumer_session_timeout_ms))
    interval_ms = int(held.configs.get(HEARTBEAT_INTERVAL, config.consumer_heartbeat_interval_ms))
    return Timing(
        min(max(session_ms, config.consumer_min_session_timeout_ms), config.consumer_max_session_timeout_ms),
        min(max(interval_ms, config.consumer_min_heartbeat_interval_ms), config.consumer_max_heartbeat_interval_ms),
    )
