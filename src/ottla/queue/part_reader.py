"""One part, being read. What is damaged in it is told once, and passed over.

Up to the right edge that info_push gives, all is messages; what is behind it was never pushed, or not completely. Where
info_push is missing or damaged, the last intact message is the end.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.queue.damage import Damage
from ottla.queue.errors import FailReadTailMessage, InvalidChecksum, NotFound
from ottla.queue.files import open_to_read, read_all_at
from ottla.queue.info_files import PartInfo
from ottla.queue.record import HEADER, HEADER_BYTES, MAGIC, MAGIC_BYTES, MAGIC_OFFSET, MAX_BODY_BYTES, decode

if TYPE_CHECKING:
    from typing import Self

    from ottla.queue.errors import FailRead
    from ottla.queue.folder import QueueFolder
    from ottla.queue.record import Message

_logger: Final = logging.getLogger("ottla.queue")

_READ_BYTES: Final = 1 << 18
_SEARCH_BYTES: Final = 1 << 20
_NEWER_MAGIC: Final = 0xEEEFFE33
"""Of v_queue 0.3 and later, whose parts may be compressed."""


class Place(NamedTuple):
    """Between two messages of a part."""

    offset: int
    number: int
    """Of the message before."""


class PartReader:
    def __init__(self, folder: QueueFolder, part: int) -> None:
        """NotFound if the part is not there."""
        self.part = part
        self.info = PartInfo(0, 0)
        """How far it is written, when that was last looked up."""
        self._is_told = False
        self._folder = folder
        self._fd = open_to_read(folder.data(part))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._fd)

    def refresh(self, place: Place) -> None:
        """Look up how far the part is written, at this place or behind it."""
        info = self._folder.part_info(self.part)
        if info is None and not self._is_told:
            self._is_told = True
            _logger.warning("%s is missing or damaged; messages are looked for", self._folder.info_push(self.part))
        self.info = PartInfo(*self.intact_end(place)) if info is None else info

    def read(self, place: Place) -> list[Message]:
        """The intact messages at this place; none at the end of the part, and none where it is damaged."""
        return self._read(place, self.info.right_edge)

    def _read(self, place: Place, edge: int) -> list[Message]:
        left = edge - place.offset
        if left <= 0:
            return []
        data = read_all_at(self._fd, min(left, _READ_BYTES), place.offset)
        found = decode(data, place.offset, self.part, place.number, self._folder.seal)
        if found.messages or found.is_damaged or left <= _READ_BYTES:
            return found.messages
        header = _header_in(data, place.offset)
        if header is None or header.end > edge:
            return []
        data = read_all_at(self._fd, header.end - place.offset, place.offset)
        return decode(data, place.offset, self.part, place.number, self._folder.seal).messages

    def skip(self, place: Place) -> tuple[Damage, Place]:
        """What is damaged here, and where reading goes on."""
        edge, count = self.info
        size = os.fstat(self._fd).st_size
        header = self._header_at(place.offset)
        if header is not None and header.number == place.number + 1 and self._is_boundary(header.end):
            after = Place(header.end, header.number)
            if after.offset <= size:
                return self._damage(place, after, "a message does not match its checksum"), after
        elif (found := self._search(place, edge)) is not None:
            after = Place(found.offset, max(found.number - 1, place.number))
            return self._damage(place, after, "there is no intact message"), after
        after = Place(edge, max(count, place.number))
        if size < edge:
            return self._damage(place, after, "the end of the part is missing", FailReadTailMessage), after
        return self._damage(place, after, self._reason(place.offset)), after

    def intact_end(self, place: Place) -> Place:
        """Behind the last intact message of the file."""
        size = os.fstat(self._fd).st_size
        while True:
            place = self.unbroken_end(place)
            found = self._search(place, size)
            if found is None:
                return place
            place = Place(found.offset, found.number - 1)

    def unbroken_end(self, place: Place) -> Place:
        """Behind the last of the intact messages that follow each other from here on."""
        size = os.fstat(self._fd).st_size
        while messages := self._read(place, size):
            place = Place(messages[-1].end, messages[-1].number)
        return place

    def _damage(self, at: Place, after: Place, text: str, kind: type[FailRead] = InvalidChecksum) -> Damage:
        return Damage(
            queue=self._folder.name,
            part=self.part,
            offset=at.offset,
            end=after.offset,
            messages=max(after.number - at.number, 1),
            text=text,
            kind=kind,
        )

    def _reason(self, offset: int) -> str:
        head = read_all_at(self._fd, HEADER_BYTES, offset)
        if len(head) == HEADER_BYTES and HEADER.unpack(head)[2] == _NEWER_MAGIC:
            return "this is the format of v_queue 0.3 and later, which is not read here"
        return "there is no intact message"

    # Headers

    def _header_at(self, offset: int) -> _Header | None:
        return _header_in(read_all_at(self._fd, HEADER_BYTES, offset), offset)

    def _is_boundary(self, offset: int) -> bool:
        return offset == self.info.right_edge or (offset < self.info.right_edge and self._header_at(offset) is not None)

    def _search(self, place: Place, edge: int) -> Message | None:
        """The first intact message that begins behind this place."""
        at = place.offset + 1
        while at + HEADER_BYTES <= edge:
            window = read_all_at(self._fd, min(_SEARCH_BYTES, edge - at), at)
            found = window.find(MAGIC_BYTES, MAGIC_OFFSET)
            while found >= 0:
                message = self._intact_at(at + found - MAGIC_OFFSET, place.number, edge)
                if message is not None:
                    return message
                found = window.find(MAGIC_BYTES, found + 1)
            if len(window) < _SEARCH_BYTES:
                return None
            # The next window begins with what may be the beginning of a header at the end of this one.
            at += len(window) - HEADER_BYTES
        return None

    def _intact_at(self, offset: int, number: int, edge: int) -> Message | None:
        header = self._header_at(offset)
        if header is None or header.end > edge:
            return None
        data = read_all_at(self._fd, header.end - offset, offset)
        messages = decode(data, offset, self.part, number, self._folder.seal).messages
        return messages[0] if messages else None


class _Header(NamedTuple):
    number: int
    end: int


def _header_in(data: bytes, offset: int) -> _Header | None:
    """The header at the beginning of this, if it is one by its looks."""
    if len(data) < HEADER_BYTES:
        return None
    start, length, magic, number, _, _ = HEADER.unpack_from(data)
    is_header = magic == MAGIC and start == offset and length <= MAX_BODY_BYTES
    return _Header(number, offset + HEADER_BYTES + length) if is_header else None


def count_of(folder: QueueFolder, part: int) -> int:
    """How many messages the part holds; 0 if it is not there."""
    info = folder.part_info(part)
    if info is not None:
        return info.count_pushed
    try:
        with PartReader(folder, part) as reader:
            return reader.intact_end(Place(0, 0)).number
    except NotFound:
        return 0
