"""`ottla lake run`: the tables of several topics, each in a thread."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerUnavailable, RequestTimedOut
from ottla.core.errors import OttlaError
from ottla.lake.catalogs import open_catalog
from ottla.lake.errors import CatalogUnavailable, TableChanged
from ottla.lake.writer import TopicWriter
from ottla.schema.errors import RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyiceberg.catalog import Catalog

    from ottla.client.blocking.background import Background
    from ottla.lake.catalogs import LakeSettings
    from ottla.lake.writer import Done, TopicSettings

_log: Final = logging.getLogger(__name__)
_TRANSIENT: Final = (BrokerUnavailable, RequestTimedOut, RegistryUnavailable, CatalogUnavailable, TableChanged, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    lake: LakeSettings
    interval_s: float
    """Between the begins of two commits of a table."""
    is_once: bool = False
    """Append what there is now, and end."""


class LakeRun:
    def __init__(self, link: Background, settings: RunSettings, report: Callable[[str, Done, float], None]) -> None:
        self._link = link
        self._settings = settings
        self._report = report
        self._stopping = threading.Event()
        self.failures: dict[str, OttlaError] = {}
        """By topic: why its table is not written any more."""

    def stop(self) -> None:
        self._stopping.set()

    def run(self, topics: Sequence[TopicSettings]) -> None:
        """Until stopped, or until no table can be written any more."""
        threads = [
            threading.Thread(target=self._maintain, args=(each,), name=f"lake-{each.topic}", daemon=True)
            for each in topics
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _maintain(self, topic: TopicSettings) -> None:
        try:
            # A catalog for each thread: connections of SQLite belong to theirs.
            self._repeat(topic, open_catalog(self._settings.lake))
        except OttlaError as failed:
            _log.error("%s: %s", topic.topic, failed)
            self.failures[topic.topic] = failed

    def _repeat(self, topic: TopicSettings, catalog: Catalog) -> None:
        writer: TopicWriter | None = None
        try:
            while not self._stopping.is_set():
                begun_s = monotonic()
                try:
                    writer = writer or TopicWriter(self._link, catalog, topic)
                    done = writer.round()
                except _TRANSIENT as failed:
                    _log.warning("%s: %s; trying again", topic.topic, failed)
                    self._stopping.wait(max(self._settings.interval_s, 1.0))
                    continue
                self._report(topic.topic, done, monotonic() - begun_s)
                if done.is_behind:
                    continue
                if self._settings.is_once:
                    return
                self._stopping.wait(max(0.0, self._settings.interval_s - (monotonic() - begun_s)))
        finally:
            if writer is not None:
                writer.close()
