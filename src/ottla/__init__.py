"""Ottla: a message broker you pip install, and the client to it."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.broker.embedded import EmbeddedBroker as Broker
    from ottla.client.blocking.admin import Admin
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer
    from ottla.client.client import Client
    from ottla.core.ids import TopicPartition

__all__ = ["Admin", "Broker", "Client", "Consumer", "Producer", "TopicPartition", "__version__"]
__version__ = "0.1.0"

_WHERE: Final = {
    "Admin": ("ottla.client.blocking.admin", "Admin"),
    "Broker": ("ottla.broker.embedded", "EmbeddedBroker"),
    "Client": ("ottla.client.client", "Client"),
    "Consumer": ("ottla.client.blocking.consumer", "Consumer"),
    "Producer": ("ottla.client.blocking.producer", "Producer"),
    "TopicPartition": ("ottla.core.ids", "TopicPartition"),
}

if not TYPE_CHECKING:
    # Without this, type checkers would accept any name.

    def __getattr__(name: str) -> object:
        """Imported lazily, so that commands start fast."""
        if name not in _WHERE:
            raise AttributeError(f"module 'ottla' has no attribute {name!r}")
        module, attribute = _WHERE[name]
        return getattr(import_module(module), attribute)
