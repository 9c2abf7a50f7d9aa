"""The testing kit: a real broker in every test, which misbehaves when told to."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.broker.faults.fault import Fault
    from ottla.broker.faults.filters import SeenRequest
    from ottla.core.errors import ErrorCode
    from ottla.testing.ephemeral import EphemeralBroker
    from ottla.testing.ephemeral import EphemeralBroker as broker  # noqa: N813 - used like a function

__all__ = ["EphemeralBroker", "ErrorCode", "Fault", "SeenRequest", "broker"]

_WHERE: Final = {
    "EphemeralBroker": ("ottla.testing.ephemeral", "EphemeralBroker"),
    "ErrorCode": ("ottla.core.errors", "ErrorCode"),
    "Fault": ("ottla.broker.faults.fault", "Fault"),
    "SeenRequest": ("ottla.broker.faults.filters", "SeenRequest"),
    "broker": ("ottla.testing.ephemeral", "EphemeralBroker"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Imported when first used: the pytest plugin is loaded in every run, also where no test needs a broker."""
    if name not in _WHERE:
        raise AttributeError(f"module 'ottla.testing' has no attribute {name!r}")
    module, attribute = _WHERE[name]
    return getattr(import_module(module), attribute)
