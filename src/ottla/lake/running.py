"""`ottla lake run`: the tables of several topics, each in a thread."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerUnavailable, RequestTimedOut
from ottla.core.errors import OttlaError
from ottla.lake.catalogs import open_catalog
from ottla.lake.errors import CatalogUnavailable, TableChanged
from ottla.lake.progress import TableProgress
from ottla.lake.writer import TopicWriter
from ottla.schema.errors import RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyiceberg.catalog import Catalog

    from ottla.client.blocking.background import Background
    from ottla.lake.catalogs import LakeSettings
    from ottla.lake.writer import Done, TopicSettings

_log: Final = logging.getLogger(__name__)
TRANSIENT: Final = (BrokerUnavailable, RequestTimedOut, RegistryUnavailable, CatalogUnavailable, TableChanged, OSError)
"""What a later try may not meet."""
_TICK_S: Final = 1.0
_LEAST_PAUSE_S: Final = 1.0
_FIRST_RETRY_S: Final = 30.0
_LAST_RETRY_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    lake: LakeSettings
    is_once: bool = False
    """Append the current records, and end."""
    look_again_s: float = 5.0
    """How soon a changed topic config takes effect."""


class LakeRun:
    def __init__(self, link: Background, settings: RunSettings, report: Callable[[str, Done, float], None]) -> None:
        self._link = link
        self._settings = settings
        self._report = report
        self._stopping = threading.Event()
        self._running: dict[str, _Maintained] = {}

    @property
    def progress(self) -> dict[str, TableProgress]:
        return {topic: each.progress for topic, each in list(self._running.items())}

    @property
    def failures(self) -> dict[str, str]:
        """By topic: why its table is no longer written."""
        return {topic: each.error for topic, each in self.progress.items() if each.state == "failed"}

    def stop(self) -> None:
        self._stopping.set()
        for each in list(self._running.values()):
            each.stopping.set()

    def run(self, topics: Iterable[TopicSettings]) -> None:
        """Until stopped, or until no table can be written any more."""
        for each in topics:
            self._start(each)
        self._join()

    def follow(self, find: Callable[[], Iterable[TopicSettings]], tick: Callable[[], None]) -> None:
        """The same for topics that may change, until stopped; a table that failed is tried again later."""
        looked_s = -self._settings.look_again_s
        while not self._stopping.is_set():
            now_s = time.monotonic()
            if now_s - looked_s >= self._settings.look_again_s:
                looked_s = now_s
                try:
                    self._adapt({each.topic: each for each in find()}, now_s)
                except TRANSIENT as failed:
                    _log.warning("could not read topic configs: %s; trying again", failed)
            if self._settings.is_once:
                break
            tick()
            self._stopping.wait(_TICK_S)
        self._join()

    def _join(self) -> None:
        for each in list(self._running.values()):
            each.thread.join()

    def _adapt(self, wanted: dict[str, TopicSettings], now_s: float) -> None:
        for topic, each in list(self._running.items()):
            if wanted.get(topic) != each.settings:
                each.stopping.set()
                each.thread.join()
                del self._running[topic]
        for topic, settings in wanted.items():
            known = self._running.get(topic)
            if known is None:
                self._start(settings)
            elif known.is_due(now_s):
                self._start(settings, min(known.retry_s * 2, _LAST_RETRY_S))

    def _start(self, settings: TopicSettings, retry_s: float = _FIRST_RETRY_S) -> None:
        maintained = _Maintained(settings, retry_s)
        maintained.thread = threading.Thread(
            target=self._maintain, args=(maintained,), name=f"lake-{settings.topic}", daemon=True
        )
        self._running[settings.topic] = maintained
        if self._stopping.is_set():
            maintained.stopping.set()
        maintained.thread.start()

    def _maintain(self, it: _Maintained) -> None:
        topic = it.settings.topic
        try:
            # A catalog for each thread: connections of SQLite belong to theirs.
            self._repeat(it, open_catalog(self._settings.lake))
        except OttlaError as failed:
            _log.error("%s: %s", topic, failed)
            it.failed(str(failed))
        except Exception as failed:  # noqa: BLE001 - the other tables go on
            _log.exception("%s: its table is no longer written", topic)
            it.failed(f"{type(failed).__name__}: {failed}")

    def _repeat(self, it: _Maintained, catalog: Catalog) -> None:
        writer: TopicWriter | None = None
        topic, progress = it.settings.topic, it.progress
        try:
            while not it.stopping.is_set():
                begun_s = time.monotonic()
                try:
                    writer = writer or TopicWriter(self._link, catalog, it.settings)
                    done = writer.round()
                except TRANSIENT as failed:
                    _log.warning("%s: %s; trying again", topic, failed)
                    progress.state, progress.error = "retrying", str(failed)
                    it.stopping.wait(max(it.settings.interval_s, _LEAST_PAUSE_S))
                    continue
                it.succeeded(done)
                self._report(topic, done, time.monotonic() - begun_s)
                if done.lag:
                    continue
                if self._settings.is_once:
                    return
                it.stopping.wait(max(0.0, it.settings.interval_s - (time.monotonic() - begun_s)))
        finally:
            if writer is not None:
                writer.close()


@dataclass(slots=True)
class _Maintained:
    """A table and the thread that writes it."""

    settings: TopicSettings
    retry_s: float
    """How long after a failure it is tried again."""
    stopping: threading.Event = field(default_factory=threading.Event)
    progress: TableProgress = field(default_factory=TableProgress)
    thread: threading.Thread = field(default_factory=threading.Thread)
    failed_s: float = 0.0

    def succeeded(self, done: Done) -> None:
        now_ms = time.time_ns() // 1_000_000
        progress = self.progress
        progress.state, progress.error = "running", ""
        progress.checked_ms, progress.lag = now_ms, done.lag
        if done.rows or done.dead_letters:
            progress.commits += 1
            progress.rows += done.rows
            progress.dead_letters += done.dead_letters
            progress.committed_ms = now_ms

    def failed(self, why: str) -> None:
        self.progress.state, self.progress.error = "failed", why
        self.failed_s = time.monotonic()

    def is_due(self, now_s: float) -> bool:
        return self.progress.state == "failed" and now_s - self.failed_s >= self.retry_s
