"""Reads one part. Corrupt data is reported once and skipped.

Everything up to the right edge in info_push is messages; data behind it was not pushed completely. If
info_push is missing or damaged, the part ends after the last intact message.
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
"""Magic of v_queue 0.3 and later, whose parts may be compressed."""


class Place(NamedTuple):
    """A position between two messages of a part."""

    offset: int
    number: int
    """Of the message before."""


class PartReader:
    def __init__(self, folder: QueueFolder, part: int) -> None:
        """Raises NotFound if the part does not exist."""
        self.part = part
        self.info = PartInfo(0, 0)
        """The right edge as of the last refresh."""
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
        """Refresh the right edge, at this position or behind it."""
        info = self._folder.part_info(self.part)
        if info is None and not self._is_told:
            self._is_told = True
            _logger.warning("%s is missing or damaged; searching for messages", self._folder.info_push(self.part))
        self.info = PartInfo(*self.intact_end(place)) if info is None else info

    def read(self, place: Place) -> list[Message]:
        """The intact messages at this position; none at the end of the part, or before corrupt data."""
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
        """The corruption at this position, and where reading continues."""
        edge, count = self.info
        size = os.fstat(self._fd).st_size
        header = self._header_at(place.offset)
        if header is not None and header.number == place.number + 1 and self._is_boundary(header.end):
            after = Place(header.end, header.number)
            if after.offset <= size:
                return self._damage(place, after, "checksum mismatch"), after
        elif (found := self._search(place, edge)) is not None:
            after = Place(found.offset, max(found.number - 1, place.number))
            return self._damage(place, after, "no intact message"), after
        after = Place(edge, max(count, place.number))
        if size < edge:
            return self._damage(place, after, "the end of the part is missing", FailReadTailMessage), after
        return self._damage(place, after, self._reason(place.offset)), after

    def intact_end(self, place: Place) -> Place:
        """The position after the last intact message of the file."""
        size = os.fstat(self._fd).st_size
        while True:
            place = self.unbroken_end(place)
            found = self._search(place, size)
            if found is None:
                return place
            place = Place(found.offset, found.number - 1)

    def unbroken_end(self, place: Place) -> Place:
        """The position after the last consecutive intact message from here on."""
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
            return "the format of v_queue 0.3 and later is not supported"
        return "no intact message"

    # Headers

    def _header_at(self, offset: int) -> _Header | None:
        return _header_in(read_all_at(self._fd, HEADER_BYTES, offset), offset)

    def _is_boundary(self, offset: int) -> bool:
        return offset == self.info.right_edge or (offset < self.info.right_edge and self._header_at(offset) is not None)

    def _search(self, place: Place, edge: int) -> Message | None:
        """The first intact message that starts after this position."""
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
            # The next window starts with a possible partial header at the end of this one.
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
    """The header at the start, if it looks like one."""
    if len(data) < HEADER_BYTES:
        return None
    start, length, magic, number, _, _ = HEADER.unpack_from(data)
    is_header = magic == MAGIC and start == offset and length <= MAX_BODY_BYTES
    return _Header(number, offset + HEADER_BYTES + length) if is_header else None


def count_of(folder: QueueFolder, part: int) -> int:
    """The number of messages in the part; 0 if it does not exist."""
    info = folder.part_info(part)
    if info is not None:
        return info.count_pushed
    try:
        with PartReader(folder, part) as reader:
            return reader.intact_end(Place(0, 0)).number
    except NotFound:
        return 0
