"""Default settings of test brokers."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ottla.broker.settings import Settings

_DRAIN_MS: Final = 250
_HEARTBEAT_MS: Final = 100
"""The heartbeat interval of consumer group members: every step of a rebalance takes one heartbeat."""


def for_tests(settings: Settings | None) -> Settings:
    if settings is None:
        base = Settings()
        groups_config = replace(
            base.groups,
            initial_rebalance_delay_ms=0,
            min_session_timeout_ms=1,
            consumer_min_session_timeout_ms=1000,
            consumer_min_heartbeat_interval_ms=1,
            consumer_heartbeat_interval_ms=_HEARTBEAT_MS,
        )
        settings = base._replace(groups=groups_config)
    broker = replace(settings.broker, drain_timeout_ms=_DRAIN_MS)
    return settings._replace(broker=broker, net=replace(settings.net, port=0))
