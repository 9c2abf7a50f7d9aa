"""Static tables that are refreshed while a pipeline runs: when to check them, and whether they have changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.spark.pipelines.definition import StaticTable


class Refresher:
    def __init__(self, tables: Iterable[StaticTable], now_s: float, look: Callable[[StaticTable], Any]) -> None:
        """`look` returns a fingerprint of the table."""
        self._look = look
        self._tables = [table for table in tables if table.refresh_ms is not None]
        self._seen = {table.name: look(table) for table in self._tables}
        self._next_s = {table.name: now_s + (table.refresh_ms or 0) / 1000 for table in self._tables}

    def changed(self, now_s: float) -> list[str]:
        """The tables that were due and have changed since they were last read."""
        found = []
        for table in self._tables:
            if now_s < self._next_s[table.name]:
                continue
            self._next_s[table.name] = now_s + (table.refresh_ms or 0) / 1000
            seen = self._look(table)
            if seen is None or seen != self._seen[table.name]:
                found.append(table.name)
            self._seen[table.name] = seen
        return found


def content_mark(table: StaticTable) -> object:
    """Names, sizes and times of its files; None if unknown, for example for an object store."""
    if "://" in table.path:
        return None
    root = Path(table.path)
    if table.format == "delta":
        root /= "_delta_log"
    files = [root] if root.is_file() else sorted(root.rglob("*"))
    found = []
    for file in files:
        try:
            about = file.stat()
        except FileNotFoundError:
            continue  # replaced in the meantime: the next check sees it
        found.append((str(file), about.st_size, about.st_mtime_ns))
    return tuple(found)
