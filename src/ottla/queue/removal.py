"""Removal of parts."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING, Final

from ottla.queue.errors import FailWrite, NotFound
from ottla.queue.files import failing_as
from ottla.queue.folder import QueueFolder
from ottla.queue.locks import Lock
from ottla.queue.part_reader import count_of

if TYPE_CHECKING:
    from pathlib import Path

_logger: Final = logging.getLogger("ottla.queue")


def removable_parts(folder: QueueFolder) -> list[int]:
    """The parts that every consumer has committed past; none without consumers."""
    newest = folder.newest_part()
    needed = [_first_needed(folder, consumer) for consumer in folder.consumers()]
    if not needed:
        return []
    return [part for part in folder.parts() if part < min(*needed, newest)]


def remove_parts(folder: QueueFolder) -> list[int]:
    """Remove them; returns which. On Windows, a part that a reader keeps open stays until later."""
    removed = []
    for part in removable_parts(folder):
        try:
            shutil.rmtree(folder.part(part))
        except OSError as refused:
            _logger.warning("queue %s: part %d cannot be removed yet: %s", folder.name, part, refused)
        else:
            removed.append(part)
    return removed


def delete_queue(base: Path, name: str) -> None:
    """Delete a queue and all its consumers; raises AlreadyOpen while a process writes to it."""
    folder = QueueFolder(base, name)
    if not folder.exists():
        raise NotFound(f"no queue {name} in {base}")
    lock = Lock(folder.lock, f"queue {name} in {base}")
    try:
        with failing_as(FailWrite, f"queue {name} cannot be removed"):
            for consumer in folder.consumers():
                folder.info_pop(consumer).unlink(missing_ok=True)
            for part in folder.parts():
                shutil.rmtree(folder.part(part))
            folder.info_queue.unlink(missing_ok=True)
            folder.info_keys.unlink(missing_ok=True)
    finally:
        lock.release(remove=not folder.exists())


def _first_needed(folder: QueueFolder, consumer: str) -> int:
    info = folder.pop_info(consumer)
    if info is None:
        return 0
    return info.part + 1 if info.count_popped >= count_of(folder, info.part) else info.part
