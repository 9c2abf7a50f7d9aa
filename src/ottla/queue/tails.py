"""The end of a part that nobody writes to any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.queue.encode import push_line
from ottla.queue.errors import NotFound
from ottla.queue.files import overwrite_line
from ottla.queue.info_files import PartInfo
from ottla.queue.part_reader import PartReader, Place

if TYPE_CHECKING:
    from ottla.queue.folder import QueueFolder


def true_end(folder: QueueFolder, part: int) -> PartInfo:
    """How far the part is written, whatever info_push says.

    A power cut may leave messages on the disk that it does not know of: they are on the disk before it is written.
    """
    info = folder.part_info(part)
    try:
        reader = PartReader(folder, part)
    except NotFound:
        return info or PartInfo(0, 0)
    with reader:
        if info is None:
            return PartInfo(*reader.intact_end(Place(0, 0)))
        return PartInfo(*reader.unbroken_end(Place(*info)))


def mend_tail(folder: QueueFolder, part: int, *, is_durable: bool) -> bool:
    """Have info_push say what is there; whether it did not."""
    end = true_end(folder, part)
    if end == folder.part_info(part):
        return False
    overwrite_line(folder.info_push(part), push_line(folder.name.encode(), *end), is_durable=is_durable)
    return True
