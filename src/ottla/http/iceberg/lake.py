"""The tables that `ottla lake` maintains: rows of its SQL catalog, and metadata files.

Reads SQLite and files directly: pyiceberg would take hundreds of milliseconds to import, and all that a REST catalog
returns is the content of the metadata file. Everything here blocks; it is called in threads.
"""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.http.iceberg.errors import CatalogError
from ottla.lake.names import CATALOG_NAME, TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable

_TIMEOUT_S: Final = 10.0
"""How long to wait for a commit of the writer."""
_HINT: Final = "run: ottla lake run TOPIC --dir DATA/lake"

_NAMESPACES: Final = """
SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?1
UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?1 ORDER BY 1
"""
_TABLES: Final = """
SELECT table_name, metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? ORDER BY 1
"""


class _Properties(msgspec.Struct):
    properties: dict[str, str] = {}


_PROPERTIES: Final = msgspec.json.Decoder(_Properties)


class Lake:
    def __init__(self, folder: Path) -> None:
        self._database = folder / "catalog.db"
        self._topics: dict[tuple[str, str], tuple[str, str]] = {}
        """The location of the metadata and the topic, by namespace and table."""

    def namespaces(self) -> list[str]:
        return [name for (name,) in self._select(_NAMESPACES, CATALOG_NAME)]

    def tables(self, namespace: str) -> dict[str, str]:
        """The location of the metadata by table."""
        return dict(self._select(_TABLES, CATALOG_NAME, namespace))

    def load(self, namespace: str, table: str) -> tuple[str, bytes] | None:
        """The location and the content of the metadata; None if there is no such table."""
        for is_last in (False, False, True):
            location = self.tables(namespace).get(table)
            if location is None:
                return None
            try:
                return location, read_metadata(location)
            except CatalogError:
                # Old files are removed after a few commits, which may have come between.
                if is_last or location == self.tables(namespace).get(table):
                    raise
        raise AssertionError

    def topics(self, namespace: str, tables: Iterable[str]) -> dict[str, str]:
        """The topic by table, from the properties of tables."""
        located = self.tables(namespace)
        return {table: self._topic(namespace, table, located[table]) for table in tables if table in located}

    def _topic(self, namespace: str, table: str, location: str) -> str:
        known = self._topics.get((namespace, table))
        if known is None or known[0] != location:
            known = self._topics[namespace, table] = (location, topic_in(read_metadata(location), table))
        return known[1]

    def _select(self, statement: str, *parameters: str) -> list[tuple[Any, ...]]:
        if not self._database.exists():
            raise CatalogError(404, f"this broker has no tables; {_HINT}")
        # Not read-only: the journal of a writer that was killed may have to be rolled back.
        where = self._database.absolute().as_uri() + "?mode=rw"
        try:
            with closing(sqlite3.connect(where, _TIMEOUT_S, uri=True)) as connection:
                return connection.execute(statement, parameters).fetchall()
        except sqlite3.OperationalError as failed:
            if "no such table" in str(failed):  # the writer is about to create them
                raise CatalogError(404, f"this broker has no tables yet; {_HINT}") from None
            raise CatalogError(503, f"could not read {self._database}: {failed}") from None


def read_metadata(location: str) -> bytes:
    """The content of a metadata file, uncompressed."""
    try:
        content = _read(location)
    except OSError as failed:
        raise CatalogError(500, f"could not read {location}: {failed}") from None
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def _read(location: str) -> bytes:
    if "://" not in location or location.startswith("file://"):
        return Path(location.removeprefix("file://").removeprefix("file:")).read_bytes()
    from pyiceberg.io import load_file_io

    with load_file_io({}, location).new_input(location).open() as file:
        content: bytes = file.read()
    return content


def topic_in(metadata: bytes, table: str) -> str:
    """The topic of a table; the table's name if it was not written by us."""
    return _PROPERTIES.decode(metadata).properties.get(TOPIC, table)


def with_referenced_snapshots(metadata: bytes) -> bytes:
    """Without snapshots to which no branch or tag points."""
    whole = msgspec.json.decode(metadata)
    kept = {ref["snapshot-id"] for ref in whole.get("refs", {}).values()} | {whole.get("current-snapshot-id")}
    whole["snapshots"] = [each for each in whole.get("snapshots", ()) if each["snapshot-id"] in kept]
    return msgspec.json.encode(whole)
