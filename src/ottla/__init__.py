"""Ottla: a message broker you pip install."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.broker.embedded import EmbeddedBroker as Broker

__all__ = ["Broker", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """`ottla.Broker`, imported when it is first used: the command line must not pay for it."""
    if name == "Broker":
        from ottla.broker.embedded import EmbeddedBroker

        return EmbeddedBroker
    raise AttributeError(f"module 'ottla' has no attribute {name!r}")
