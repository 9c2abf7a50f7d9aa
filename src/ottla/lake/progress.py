"""What a writer process does, as a file beside the catalog: for `ottla lake status` and the broker's metrics."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME: Final = "writer.json"


class TableProgress(msgspec.Struct, kw_only=True):
    state: str = "starting"
    """starting, running, retrying or failed."""
    error: str = ""
    commits: int = 0
    rows: int = 0
    """Committed by this process, as are dead letters."""
    dead_letters: int = 0
    committed_ms: int = 0
    """When records were last committed; 0 for not yet."""
    checked_ms: int = 0
    """When the end of the topic was last reached or read up to."""
    lag: int = 0
    """Offsets that were left after that."""


class WriterProgress(msgspec.Struct, kw_only=True):
    pid: int
    started_ms: int
    topics: dict[str, TableProgress] = {}

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{FILE_NAME}.{os.getpid()}"
        temporary.write_bytes(msgspec.json.encode(self))
        temporary.replace(folder / FILE_NAME)

    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def read_progress(folder: Path) -> WriterProgress | None:
    """None if no process has written there, or another release did."""
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=WriterProgress)
    except (OSError, msgspec.DecodeError):
        return None
