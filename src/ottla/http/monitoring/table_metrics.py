"""Topics as tables in `/metrics`: the writer process of this node. Imported once a topic has ottla.table.enable."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.http.monitoring.openmetrics import counter, gauge
from ottla.lake.progress import read_progress

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.interfaces.protocol_servers import TableWriter
    from ottla.http.monitoring.openmetrics import Family
    from ottla.lake.progress import WriterProgress


async def table_families(broker: Broker, writer: TableWriter) -> tuple[Family, ...]:
    found = await asyncio.get_running_loop().run_in_executor(None, read_progress, broker.lake_folder)
    is_current = found is not None and found.pid == writer.pid
    return _families(writer, found if is_current else None, broker.clock.now_ms())


def _families(writer: TableWriter, found: WriterProgress | None, now_ms: int) -> tuple[Family, ...]:
    up = gauge("ottla_table_writer_up", "1 while the table writer of this node runs.")
    up.add(int(writer.pid is not None))
    restarts = counter("ottla_table_writer_restarts", "Restarts of the table writer after it ended.")
    restarts.add(writer.restarts)
    failed = gauge("ottla_table_failed", "1 if the table of a topic is not written because of an error.")
    rows = gauge("ottla_table_rows", "Rows committed since the table writer was started.")
    letters = gauge("ottla_table_dead_letters", "Dead letters committed since the table writer was started.")
    commits = gauge("ottla_table_commits", "Commits since the table writer was started.")
    ages = gauge("ottla_table_checked_seconds", "Since the table writer last read up to the end of the topic.")
    lags = gauge("ottla_table_lag", "Offsets that were left then.")
    for topic, table in ({} if found is None else found.topics).items():
        failed.add(int(table.state == "failed"), topic=topic)
        rows.add(table.rows, topic=topic)
        letters.add(table.dead_letters, topic=topic)
        commits.add(table.commits, topic=topic)
        lags.add(table.lag, topic=topic)
        if table.checked_ms:
            ages.add(max(0, now_ms - table.checked_ms) / 1000, topic=topic)
    return up, restarts, failed, rows, letters, commits, ages, lags
