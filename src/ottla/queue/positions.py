"""Start positions of consumers: the committed one, if it is valid."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ottla.queue.errors import NotFound
from ottla.queue.part_reader import PartReader, Place

if TYPE_CHECKING:
    from ottla.queue.folder import QueueFolder
    from ottla.queue.info_files import PopInfo

_logger: Final = logging.getLogger("ottla.queue")

Start = Literal["latest_part", "earliest"]


class Position(NamedTuple):
    """A position between two messages of a queue."""

    part: int
    offset: int
    """Offset of the next message."""
    number: int
    """Of the message before, in its part."""


def first_position(folder: QueueFolder, start: Start) -> Position:
    """The start of the oldest or newest part."""
    newest = folder.newest_part()
    if start == "latest_part":
        return Position(newest, 0, 0)
    parts = folder.parts()
    return Position(parts[0] if parts else newest, 0, 0)


def committed_position(folder: QueueFolder, consumer: str) -> Position:
    """The consumer's commit. The file has no checksum, so it is compared with its part.

    If they contradict each other, messages are redelivered rather than lost.
    """
    info = folder.pop_info(consumer)
    if info is None or info.part > max([folder.newest_part(), *folder.parts()]):
        _logger.warning("queue %s: the commit of consumer %s is damaged; restarting it", folder.name, consumer)
        return first_position(folder, "earliest")
    place = _settled(folder, info)
    if place is None:
        _logger.warning(
            "queue %s: consumer %s committed byte %d of part %d, where no message starts; going back",
            *(folder.name, consumer, info.position, info.part),
        )
        place = Place(0, 0)
    return Position(info.part, *place)


def place_at(folder: QueueFolder, part: int, offset: int) -> Place | None:
    """The position at this offset of a part; None if no message starts or ends there."""
    try:
        reader = PartReader(folder, part)
    except NotFound:
        return Place(offset, 0)
    with reader:
        reader.refresh(Place(0, 0))
        if offset == reader.info.right_edge:
            return Place(*reader.info)
        if messages := reader.read(Place(offset, 0)):
            return Place(offset, messages[0].number - 1)
        return _walked_to(reader, offset)


def _settled(folder: QueueFolder, info: PopInfo) -> Place | None:
    place = place_at(folder, info.part, info.position)
    if place is None or place.number <= info.count_popped or not folder.part(info.part).exists():
        return place
    # One of the two numbers is wrong. Go back to the earlier one, the count.
    with PartReader(folder, info.part) as reader:
        reader.refresh(Place(0, 0))
        return _walked_to(reader, place.offset, info.count_popped)


def _walked_to(reader: PartReader, offset: int, number: int | None = None) -> Place | None:
    """Scan from the start of the part to this offset, or to this number if that comes first."""
    place = Place(0, 0)
    while place.offset < min(offset, reader.info.right_edge):
        messages = reader.read(place)
        if not messages:
            _, place = reader.skip(place)
            if number is not None and place.number >= number:
                return place
        for message in messages:
            place = Place(message.end, message.number)
            if place.number == number or place.offset == offset:
                return place
    return place if place.offset == offset else None
