"""Configs that a group may have of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.groups.consumer.environment import Timing
from ottla.storage.catalog.entries import ConfigResource, ConfigScope

if TYPE_CHECKING:
    from ottla.groups.config import GroupConfig
    from ottla.storage.catalog.view import CatalogView

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"


def timing_of(view: CatalogView, config: GroupConfig, group_id: str) -> Timing:
    """What was set for this group, within what the broker allows by now; else what holds for all."""
    held = view.configs.get(ConfigResource(ConfigScope.GROUP, group_id)) if view.configs else None
    if held is None:
        return Timing(config.consumer_session_timeout_ms, config.consumer_heartbeat_interval_ms)
    session_ms = int(held.configs.get(SESSION_TIMEOUT, config.consumer_session_timeout_ms))
    interval_ms = int(held.configs.get(HEARTBEAT_INTERVAL, config.consumer_heartbeat_interval_ms))
    return Timing(
        min(max(session_ms, config.consumer_min_session_timeout_ms), config.consumer_max_session_timeout_ms),
        min(max(interval_ms, config.consumer_min_heartbeat_interval_ms), config.consumer_max_heartbeat_interval_ms),
    )
