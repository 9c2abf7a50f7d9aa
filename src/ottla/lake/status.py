"""`ottla lake status`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ottla.client.blocking.background import Background
from ottla.client.errors import ClientError
from ottla.lake.catalogs import open_catalog
from ottla.lake.covered import covered
from ottla.lake.names import TOPIC, dead_letters_of, table_of
from ottla.lake.progress import read_progress
from ottla.lake.source import TopicSource

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from ottla.client.security import Security
    from ottla.lake.catalogs import LakeSettings
    from ottla.lake.progress import WriterProgress


def statuses(servers: str, security: Security | None, settings: LakeSettings) -> list[dict[str, object]]:
    """A row for each table of the namespace, and of that of dead letters."""
    catalog = open_catalog(settings)
    writer = read_progress(settings.folder)
    found: list[Table] = []
    for namespace in (settings.namespace, dead_letters_of("", settings.namespace).namespace):
        if catalog.namespace_exists((namespace,)):
            found += [catalog.load_table(each) for each in sorted(catalog.list_tables((namespace,)))]
    if not found and writer is None:
        return []
    link = Background("lake", servers, {"client_id": "ottla-lake", "security": security})
    try:
        rows = [_status(table, link, has_lag=table.name()[0] == settings.namespace) for table in found]
        return _with_states(rows, writer, settings.namespace)
    finally:
        link.close()


def _with_states(
    rows: list[dict[str, object]], writer: WriterProgress | None, namespace: str
) -> list[dict[str, object]]:
    """The state of the broker's writer by topic; a row also for a table that it could not create."""
    if writer is None:
        return [row | {"state": ""} for row in rows]
    is_alive = writer.is_alive()
    states = {
        topic: f"{each.state}: {each.error}" if each.error else each.state for topic, each in writer.topics.items()
    }
    states = {topic: state if is_alive else "stopped" for topic, state in states.items()}
    names = {topic: str(table_of(topic, namespace)) for topic in states}
    known = {row["table"] for row in rows}
    missing = [
        {"table": name, "topic": topic, "rows": 0, "files": 0, "snapshots": 0, "committed": "", "lag": ""}
        for topic, name in names.items()
        if name not in known
    ]
    return [
        row | {"state": states.get(str(row["topic"]), "") if row["table"] in names.values() else ""}
        for row in (*rows, *missing)
    ]


def _status(table: Table, link: Background, *, has_lag: bool) -> dict[str, object]:
    snapshot = table.current_snapshot()
    summary = {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties
    topic = table.properties.get(TOPIC, "")
    return {
        "table": ".".join(table.name()),
        "topic": topic,
        "rows": int(summary.get("total-records", 0)),
        "files": int(summary.get("total-data-files", 0)),
        "snapshots": len(table.metadata.snapshots),
        "committed": ""
        if snapshot is None
        else f"{datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC):%Y-%m-%d %H:%M:%SZ}",
        "lag": _lag(link, topic, table) if has_lag else "",
    }


def _lag(link: Background, topic: str, table: Table) -> object:
    """Offsets of the topic that the table does not cover yet."""
    covered_offsets = covered(table).partitions
    try:
        ends = TopicSource(link, topic).ends()
    except ClientError:
        return "?"
    return sum(max(0, end - covered_offsets.get(partition, 0)) for partition, end in ends.items())
