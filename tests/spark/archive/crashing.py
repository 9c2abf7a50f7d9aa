"""Archives a topic once per number read from stdin, and is killed at that disk operation. Run by a test."""

import os
import pathlib
import signal
import sys
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq

from ottla.client.blocking.background import Background
from ottla.spark.archive.archiver import Archiver, Rules
from ottla.spark.archive.places import FolderPlace

servers, topic, folder = sys.argv[1:]
left = 0


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def step(*given: Any, **named: Any) -> Any:
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **named)

    return step


def archive() -> None:
    place = FolderPlace(pathlib.Path(folder))
    link = Background("crashing", servers, {})
    with place.held() as hold:
        os.fsync = counted(os.fsync)
        pathlib.Path.rename = counted(pathlib.Path.rename)  # type: ignore[method-assign]
        pathlib.Path.unlink = counted(pathlib.Path.unlink)  # type: ignore[method-assign]
        pq.ParquetWriter.close = counted(pq.ParquetWriter.close)
        Archiver(link, topic, place, hold, Rules(merges_all=True)).round()
    link.close()


for line in sys.stdin:
    left = int(line)
    # A forked process each time, without importing everything again.
    if (child := os.fork()) == 0:
        archive()
        os._exit(0)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
    sys.stdout.flush()
