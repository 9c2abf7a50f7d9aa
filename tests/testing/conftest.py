"""The fixtures of the kit, also where the package is on the path without being installed."""

from ottla.testing.plugin import ottla, ottla_cluster, ottla_session, ottla_settings

__all__ = ["ottla", "ottla_cluster", "ottla_session", "ottla_settings"]
