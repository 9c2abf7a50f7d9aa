"""The identity of a data folder: its id, a generation that only grows, and the machine that uses it.

A cluster stores id and generation. A folder with another id, or with a smaller generation than stored, is not the one
that the node had, but a new disk or an older copy. The machine is stored only in the folder: after a reboot, or in a
copy of the folder, unsynced records may be missing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.core.boot_id import boot_id
from ottla.core.ids import TopicId
from ottla.storage.files import folder_errors, replace_file
from ottla.storage.folder import meta_properties

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.folder.meta_properties import MetaProperties

_logger: Final = logging.getLogger(__name__)

GENERATION: Final = "folder-generation-checkpoint"
MACHINE: Final = "machine-checkpoint"
"""Both files are specific to Ottla; Kafka ignores them."""


class FolderIdentity:
    def __init__(self, path: Path, meta: MetaProperties) -> None:
        self._path = path
        self._meta = meta
        self.is_new = meta.is_new
        """Whether the folder was empty, or is an older copy: it cannot be relied on for acknowledged records."""
        self.generation = _read(path / GENERATION)
        noted = _noted(path)
        self.is_on_same_machine = bool(boot_id()) and noted == _machine(path)
        """Whether the machine was not rebooted and the folder not copied since `note_machine`: all written data exists,
        synced or not.
        """
        self.is_copy = bool(noted) and noted.split()[1:] != _machine(path).split()[1:]
        """Whether the folder was copied since then, so that even synced records may be missing."""
        if not meta.directory_id:
            # A folder from Kafka may not have an id.
            self._rename()

    @property
    def id(self) -> str:
        return self._meta.directory_id

    def raise_generation(self, generation: int) -> bool:
        """Increment the generation durably. Returns whether it was written: on a full disk the old one is kept, which
        is sufficient.
        """
        try:
            replace_file(self._path / GENERATION, f"{generation}\n".encode("ascii"))
        except OSError as failed:
            _logger.warning("could not write %s: %s", GENERATION, failed)
            return False
        self.generation = generation
        return True

    def note_machine(self) -> None:
        """Record that the folder is used on this machine since its last boot."""
        try:
            replace_file(self._path / MACHINE, _machine(self._path))
        except OSError as failed:
            _logger.warning("could not write %s: after a crash this broker leaves the ISR: %s", MACHINE, failed)

    def renew(self) -> None:
        """Give the folder a new id: it is an older copy of the folder with the current id."""
        self._rename()
        self.is_new = True

    def _rename(self) -> None:
        renamed = replace(self._meta, directory_id=str(TopicId.random()))
        with folder_errors(self._path):
            meta_properties.save(self._path, renamed)
        self._meta = renamed


def _machine(path: Path) -> bytes:
    """The current boot id, and the identity of the file itself: a copy has another inode or change time."""
    found = (path / meta_properties.META_PROPERTIES).stat()
    return f"{boot_id() or 'unknown'} {found.st_ino:016x} {found.st_ctime_ns:016x}\n".encode("ascii")


def _noted(path: Path) -> bytes:
    try:
        return (path / MACHINE).read_bytes()
    except OSError:
        return b""


def _read(path: Path) -> int:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return 0
