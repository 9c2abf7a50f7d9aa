"""The stored exposures: `dmqp.json` in the data folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.core.errors import DataDirError, StorageError
from ottla.core.security import ANONYMOUS

if TYPE_CHECKING:
    from pathlib import Path

EXPOSURES_FILE: Final = "dmqp.json"


class Exposure(msgspec.Struct, kw_only=True):
    topic: str
    topic_id: str
    """The topic's id: a topic re-created under the same name is not exposed."""
    ports: list[int]
    """The port of each shard."""
    principal: str = ANONYMOUS
    """The principal that exposed the topic; requests are authorized as this principal."""
    next_sequence: int = 0
    """The minimum of the next sequence id …"""
    ends: list[int] = []
    """… and offsets of the shards before which no record has a sequence id that high."""


class ExposuresFile:
    def __init__(self, folder: Path) -> None:
        self._path = folder / EXPOSURES_FILE

    def read(self) -> list[Exposure]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[Exposure])
        except FileNotFoundError:
            return []
        except msgspec.MsgspecError as malformed:
            raise DataDirError(f"{self._path} cannot be read: {malformed}") from None

    def write(self, exposures: list[Exposure]) -> None:
        """Atomic: a crash leaves the old or the new file."""
        content = msgspec.json.format(msgspec.json.encode(exposures), indent=2) + b"\n"
        try:
            self._replace(content)
        except OSError as refused:
            raise StorageError(f"{self._path} cannot be written: {refused.strerror or refused}") from None

    def _replace(self, content: bytes) -> None:
        temporary = self._path.with_name(EXPOSURES_FILE + ".tmp")
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
