"""Appends a topic to its tables once per number read from stdin, and is killed at that step. Run by a test.

Steps are each file that is begun and closed, each commit of a catalog before and after it, and each removed file.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from ottla.client.blocking.background import Background
from ottla.lake import compacting
from ottla.lake import writer as writer_module
from ottla.lake.catalogs import LakeSettings, open_catalog
from ottla.lake.values import ValueSettings
from ottla.lake.writer import TopicSettings, TopicWriter

servers, topic, folder, *mode = sys.argv[1:]
left = 0


def step() -> None:
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*given: Any, **named: Any) -> Any:
        step()
        result = function(*given, **named)
        step()
        return result

    return called


def append() -> None:
    PyArrowFile.create = counted(PyArrowFile.create)
    PyArrowFileIO.delete = counted(PyArrowFileIO.delete)
    pq.ParquetWriter.close = counted(pq.ParquetWriter.close)
    SqlCatalog.commit_table = counted(SqlCatalog.commit_table)
    # Files are merged after each commit, to be killed there, too.
    writer_module._COMPACT_EVERY, compacting._FAN_OUT = 1, 2
    link = Background("crashing", servers, {})
    values = ValueSettings(format="json", columns="id bigint, name string")
    settings = TopicSettings(
        topic=topic, namespace="topics", values=values, keep_snapshots=2, mode="upsert" if mode else "append"
    )
    writer = TopicWriter(link, open_catalog(LakeSettings(folder=Path(folder))), settings)
    writer.round()
    writer.close()
    link.close()


for line in sys.stdin:
    left = int(line)
    # A forked process each time, without importing everything again.
    if (child := os.fork()) == 0:
        append()
        os._exit(0)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
    sys.stdout.flush()
