"""`ottla lake maintain`: merge small files, expire snapshots, remove orphans; beside a running writer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from ottla.lake.catalogs import open_catalog
from ottla.lake.compacting import compact
from ottla.lake.names import CONTENT, OFFSETS, TOPIC, TableName, dead_letters_of
from ottla.lake.orphans import remove_orphans
from ottla.lake.topic_table import TableDefinition, TopicTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from ottla.lake.catalogs import LakeSettings


class Upkeep(NamedTuple):
    keep_snapshots: int
    orphans_older_than_s: float


class Maintained(NamedTuple):
    table: str
    merged: int
    into: int
    expired: int
    orphans: int


def maintain(settings: LakeSettings, topics: Collection[str], upkeep: Upkeep) -> Iterator[Maintained]:
    """Each table of these topics, or of all, and that of its dead letters."""
    catalog = open_catalog(settings)
    for namespace in (settings.namespace, dead_letters_of("", settings.namespace).namespace):
        if not catalog.namespace_exists((namespace,)):
            continue
        for name in sorted(catalog.list_tables((namespace,))):
            table = catalog.load_table(name)
            if OFFSETS in table.properties and (not topics or table.properties.get(TOPIC) in topics):
                yield _maintained(catalog, table, upkeep)


def _maintained(catalog: Catalog, found: Table, upkeep: Upkeep) -> Maintained:
    about = found.properties
    table = TopicTable(
        catalog,
        TableDefinition(
            name=TableName(*found.name()),
            topic=about.get(TOPIC, ""),
            content=about.get(CONTENT, ""),
            schema=None,
            keep_snapshots=upkeep.keep_snapshots,
        ),
    )
    table.observe()
    before = {each.snapshot_id for each in table.table.metadata.snapshots}
    merged = compact(table, is_thorough=True)
    table.expire()
    left = {each.snapshot_id for each in table.table.metadata.snapshots}
    orphans = remove_orphans(table.table, upkeep.orphans_older_than_s, time.time())
    return Maintained(str(table.name), merged.before, merged.after, len(before - left), orphans)
