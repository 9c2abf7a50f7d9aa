"""Threads that register schemas while brokers are killed, and what they were told."""

from __future__ import annotations

import itertools
import json
import threading
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 90.0


def schema_of(subject: str) -> str:
    return json.dumps({"type": "record", "name": subject.replace("-", "_"), "fields": []})


class Registering:
    """A thread for each URL in a `with` block; each schema is different, and registered under its own subject."""

    def __init__(self, name: str, urls: list[Callable[[], str]]) -> None:
        self.acknowledged: dict[str, int] = {}
        self._name = name
        self._changed = threading.Condition()
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(at, url), daemon=True) for at, url in enumerate(urls)]

    def __enter__(self) -> Registering:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    def wait_for(self, more: int) -> None:
        """Until this many more are acknowledged."""
        with self._changed:
            wanted = len(self.acknowledged) + more
            assert self._changed.wait_for(lambda: len(self.acknowledged) >= wanted, PATIENCE_S), self.acknowledged

    def _run(self, thread: int, url: Callable[[], str]) -> None:
        with httpx.Client(timeout=30) as client:
            for at in itertools.count():
                if self._ends.is_set():
                    return
                self._register(client, url, f"{self._name}-{thread}-{at}")

    def _register(self, client: httpx.Client, url: Callable[[], str], subject: str) -> None:
        try:
            answer = client.post(f"{url()}/subjects/{subject}/versions", json={"schema": schema_of(subject)})
        except (httpx.HTTPError, OSError, ValueError, KeyError):
            self._ends.wait(0.05)  # the node is down
            return
        if answer.status_code == 200:
            with self._changed:
                self.acknowledged[subject] = answer.json()["id"]
                self._changed.notify_all()


def check(url: str, acknowledged: dict[str, int]) -> None:
    """Every acknowledged schema is there with its id, and no id is that of two schemas."""
    found: list[dict[str, Any]] = httpx.get(f"{url}/schemas", timeout=30).json()
    ids = {each["subject"]: each["id"] for each in found}
    assert {subject: ids.get(subject) for subject in acknowledged} == acknowledged
    assert len({each["id"] for each in found}) == len({each["schema"] for each in found}) == len(found)
