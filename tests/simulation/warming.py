"""What the product imports when it is first needed: imported once, before any history is forked."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

_PACKAGES: Final = (
    "broker",
    "client.admin",
    "client.consumer",
    "client.group",
    "client.producer",
    "cluster.replication",
    "dmqp",
    "groups",
    "records",
    "share",
    "storage",
    "transactions",
    "wire.messages",
)
_LEFT_OUT: Final = frozenset(
    {"ottla.broker.tracing", "ottla.client.consumer.columns", "ottla.dmqp.rest", "ottla.records.arrow"}
)
"""Nothing in a history needs them, and some need packages that are not installed everywhere."""


def import_all() -> None:
    for package in _PACKAGES:
        found = importlib.import_module(f"ottla.{package}")
        for module in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
            if module.name not in _LEFT_OUT:
                importlib.import_module(module.name)
    importlib.import_module("ottla.cluster.connecting")
    importlib.import_module("tests.simulation.history")
    for encoding in ("ascii", "utf-16-le"):
        # The interpreter imports a codec when it is first needed, unless the text is short.
        ("x" * 100).encode(encoding).decode(encoding)
