"""All of the load, from its start to the moment when everything that was sent is acknowledged or given up on."""

from __future__ import annotations

import threading
import time
from random import Random

from bench.soak import producers
from bench.soak.admin import NAMES, Admin
from bench.soak.consumer_group import CommitWatch, Group
from bench.soak.ledger import Ledger
from bench.soak.reading import ends

ADMIN_EVERY_S = 1.0
GROUP_CHANGE_EVERY_S = 7.0


class Load:
    def __init__(self, address: str, ledger: Ledger, rng: Random) -> None:
        self._address = address
        self._ledger = ledger
        self._rng = rng
        self._stop = threading.Event()
        self._watch = CommitWatch(address, ledger)
        self._group = Group(address, NAMES, ledger)
        self.admin = Admin(address, ledger, rng)

    def start(self) -> None:
        self.admin.create_topics()
        self._producers = producers.start_all(self._address, self._ledger, self._stop)
        self._group.start()
        self._changes = threading.Thread(target=self._change, name="changes", daemon=True)
        self._changes.start()

    def _change(self) -> None:
        """In a separate thread, so that some of its calls are pending when the broker stops."""
        next_group_change_s = time.monotonic() + GROUP_CHANGE_EVERY_S / 2
        while not self._stop.wait(ADMIN_EVERY_S):
            self.admin.do_something()
            self._watch.look()
            if time.monotonic() >= next_group_change_s:
                self._group.change(self._rng)
                next_group_change_s = time.monotonic() + GROUP_CHANGE_EVERY_S

    def finish(self) -> None:
        self._stop.set()
        producers.join_all([*self._producers, self._changes], self._ledger)
        self._watch.await_end(ends(self._watch.consumer, self.data_partitions()))
        self._group.stop()
        self._watch.look()
        self._watch.close()

    def data_partitions(self) -> dict[str, int]:
        return {name: count for name, count in self.admin.existing().items() if name in NAMES}
