"""The end of a part that is no longer written to."""

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
    """The actual end of the part, regardless of info_push.

    After a power failure, messages may be on disk that info_push does not count yet, since they are written first.
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
    """Correct info_push; returns whether it was wrong."""
    end = true_end(folder, part)
    if end == folder.part_info(part):
        return False
    overwrite_line(folder.info_push(part), push_line(folder.name.encode(), *end), is_durable=is_durable)
    return True
