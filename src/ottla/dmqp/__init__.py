"""DMQP: push and pop over a small binary protocol. The client is imported lazily."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.dmqp.client import Client, Message
    from ottla.dmqp.errors import (
        DmqpError,
        InvalidSequence,
        MessageTooLarge,
        NotReached,
        Refused,
        TooManyConsumers,
        TopicExists,
    )

__all__ = [
    "Client",
    "DmqpError",
    "InvalidSequence",
    "Message",
    "MessageTooLarge",
    "NotReached",
    "Refused",
    "TooManyConsumers",
    "TopicExists",
]

_IN_CLIENT: Final = ("Client", "Message")


if not TYPE_CHECKING:
    # Without this, type checkers would accept any name.

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'ottla.dmqp' has no attribute {name!r}")
        return getattr(import_module("ottla.dmqp.client" if name in _IN_CLIENT else "ottla.dmqp.errors"), name)
