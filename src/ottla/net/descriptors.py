"""File descriptors: limits connections so that the logs have enough."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

try:
    import resource
except ImportError:  # not on this platform
    resource = None  # type: ignore[assignment]

_MOST_RESERVED: Final = 1024
_RESERVED_SHARE: Final = 4
_MACOS_OPEN_MAX: Final = 10_240
"""macOS refuses a higher soft limit, also if the hard limit is infinite."""


def raise_limit() -> None:
    """Raise the soft limit of descriptors to the hard limit."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            except (OSError, ValueError):
                with suppress(OSError, ValueError):
                    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, _MACOS_OPEN_MAX), hard))


def connections_that_fit(wanted: int) -> int:
    """`wanted`, or as many as leave a reserve for the logs."""
    if resource is None:
        return wanted
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, limit - min(_MOST_RESERVED, limit // _RESERVED_SHARE)))
