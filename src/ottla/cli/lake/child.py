"""The writer process of a broker: `python -m ottla.cli.lake.child`.

On standard input come its plan, and then the topics with their configs, whenever they change. It ends when that pipe is
closed: by the broker, or because the broker was killed.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, cast

import msgspec

from ottla.cli.connecting import Reach
from ottla.cli.server.logs import set_up_logging
from ottla.client.blocking.background import Background
from ottla.core.errors import OttlaError
from ottla.lake.catalogs import LakeSettings
from ottla.lake.declared import DeclaredTables
from ottla.lake.progress import WriterProgress
from ottla.lake.running import LakeRun, RunSettings

if TYPE_CHECKING:
    from ottla.cli.lake.plan import WriterPlan
    from ottla.lake.writer import Done, TopicSettings

_log: Final = logging.getLogger("ottla.lake")
_LOOK_AGAIN_S: Final = 0.5
_PATIENCE_S: Final = 5.0
"""How long a commit may take after it was asked to stop. To end in the middle of it is safe."""


def main() -> None:
    # An interrupt from the terminal is for the broker, which stops this process in order.
    os.setpgrp()
    # Only the broker can write to it: this process is its child.
    plan = cast("WriterPlan", pickle.load(sys.stdin.buffer))  # noqa: S301
    set_up_logging(*plan.logging)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    reach = Reach(plan.profile)
    link = Background("lake", reach.servers, {"client_id": "ottla-lake", "security": reach.security()})
    lake = LakeSettings(folder=plan.folder, warehouse=plan.warehouse, catalog=plan.catalog, namespace=plan.namespace)
    running = LakeRun(link, RunSettings(lake=lake, look_again_s=_LOOK_AGAIN_S), _tell)
    wanted = _Wanted(DeclaredTables(namespace=plan.namespace, registry=plan.registry))
    threading.Thread(target=wanted.read, args=(running,), daemon=True).start()
    about = WriterProgress(pid=os.getpid(), started_ms=time.time_ns() // 1_000_000)

    def tick() -> None:
        about.topics = running.progress
        about.write(plan.folder)

    try:
        running.follow(wanted.topics, tick)
    except OttlaError as failed:
        sys.exit(f"ottla lake: {failed}")
    finally:
        link.close()


class _Wanted:
    """The tables that the broker wants to be written."""

    def __init__(self, tables: DeclaredTables) -> None:
        self._tables = tables
        self._configs: dict[str, dict[str, str]] = {}

    def topics(self) -> list[TopicSettings]:
        return self._tables.declared(self._configs)

    def read(self, running: LakeRun) -> None:
        for line in sys.stdin.buffer:
            self._configs = msgspec.json.decode(line, type=dict[str, dict[str, str]])
        running.stop()
        time.sleep(_PATIENCE_S)
        os._exit(0)


def _tell(topic: str, done: Done, took_s: float) -> None:
    if done.rows or done.dead_letters:
        _log.info("%s: committed %d rows, %d dead letters in %.1f s", topic, done.rows, done.dead_letters, took_s)


if __name__ == "__main__":
    main()
