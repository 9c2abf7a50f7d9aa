"""Which data folder this is, and how recent: its id, and a number that only grows.

A cluster notes both. A folder with another id, or with a smaller number than the one that was noted, is not the one
that the node had: a new disk, or an older copy of the old one.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ottla.core.errors import DataDirError
from ottla.core.ids import TopicId
from ottla.storage import meta_properties
from ottla.storage.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.meta_properties import MetaProperties

_logger: Final = logging.getLogger(__name__)

GENERATION: Final = "folder-generation-checkpoint"
"""Ottla's own; Kafka ignores it."""


class FolderIdentity:
    def __init__(self, path: Path, meta: MetaProperties) -> None:
        self._path = path
        self._meta = meta
        self.is_new = meta.is_new
        """Whether nothing that was ever acknowledged can be in it, or it is not known what."""
        self.generation = _read(path / GENERATION)
        if not meta.directory_id:
            # A folder that Kafka left may have none.
            self._rename()

    @property
    def id(self) -> str:
        return self._meta.directory_id

    def raise_generation(self, generation: int) -> bool:
        """Durably. Whether it was: a disk that is full keeps the last one, which is as good."""
        try:
            replace_file(self._path / GENERATION, f"{generation}\n".encode("ascii"))
        except OSError as failed:
            _logger.warning("could not write %s: %s", GENERATION, failed)
            return False
        self.generation = generation
        return True

    def renew(self) -> None:
        """It is an older copy of the folder with this id, so it gets another."""
        self._rename()
        self.is_new = True

    def _rename(self) -> None:
        renamed = replace(self._meta, directory_id=str(TopicId.random()))
        try:
            meta_properties.save(self._path, renamed)
        except OSError as refused:
            raise DataDirError(f"{self._path} cannot be used: {refused.strerror}") from None
        self._meta = renamed


def _read(path: Path) -> int:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return 0
