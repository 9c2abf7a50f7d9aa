"""Blocking steps of a node's start: a lost connection to the catalog delays them but does not fail them."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.cluster.operations import Disconnected

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.cluster.store import Store

T = TypeVar("T")

_logger: Final = logging.getLogger(__name__)

_TRIES: Final = 5
_PAUSES_IN_A_SESSION: Final = 10


def retried(store: Store, step: Callable[[], T]) -> T:
    """Run a repeatable step; raises Disconnected if the connection is lost in every attempt."""
    for _ in range(_TRIES - 1):
        try:
            return step()
        except Disconnected as lost:
            _logger.warning("retrying to read the catalog: the connection was lost: %s", lost)
            time.sleep(store.timeout_s / _PAUSES_IN_A_SESSION)
    return step()
