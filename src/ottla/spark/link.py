"""One client per cluster and Spark process. Workers are reused between tasks, and so are connections."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

from ottla.client.blocking.background import Background
from ottla.spark.kafka_settings import client_options

if TYPE_CHECKING:
    from collections.abc import Mapping

_Key = tuple[int, tuple[tuple[str, str], ...]]

_links: Final[dict[_Key, Background]] = {}
_lock: Final = threading.Lock()


def link_to(kafka: Mapping[str, str]) -> Background:
    """The client for these settings, made if there is none yet in this process."""
    key = os.getpid(), tuple(sorted(kafka.items()))
    with _lock:
        if key not in _links:
            _links[key] = Background("spark source", kafka["bootstrap.servers"], client_options(kafka))
        return _links[key]
