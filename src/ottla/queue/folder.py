"""The files of a queue.

Q_info_queue              the part that is written to
Q_queue.lock              locked by the writer
Q-0/ Q-1/ ...             a folder per part
Q_queue                 its messages
Q_info_push             its size and message count
Q_info_pop_C              the position committed by consumer C
Q_info_pop_C.lock         locked by the consumer
Q_info_keys               the keys an encrypted queue needs

Several queues may share the folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.queue.errors import FailRead, FailWrite, NotFound, Other
from ottla.queue.files import failing_as, read_small
from ottla.queue.info_files import (
    MAX_LINE_BYTES,
    PartInfo,
    PopInfo,
    parse_pop_line,
    parse_push_line,
    parse_queue_line,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.queue.sealing import MessageSeal

_INFO_QUEUE: Final = "_info_queue"
_INFO_KEYS: Final = "_info_keys"
_INFO_POP: Final = "_info_pop_"
_NOT_CONSUMERS: Final = (".lock", ".tmp")
MAX_NAME_BYTES: Final = 100
# A concurrent reader of a line being written may see neither the old nor the new one.
_ATTEMPTS: Final = 3
_MAX_PART: Final = 0xFFFF_FFFF
# Invalid in Windows file names; and a semicolon or a space ends a field for v-queue.
_FORBIDDEN: Final = re.compile(r'[<>:"/\\|?*;\s\x00-\x1f\x7f]')
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)


def check_name(what: str, name: str) -> str:
    """A name that is a valid file name on every operating system, and that v-queue can parse; otherwise Other."""
    problem = _problem_of(name)
    if problem:
        raise Other(f"invalid {what} name {name!r}: {problem}")
    return name


def _problem_of(name: str) -> str:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "not valid Unicode"
    if not 1 <= size <= MAX_NAME_BYTES:
        return f"it must have 1 to {MAX_NAME_BYTES} bytes"
    if found := _FORBIDDEN.search(name):
        return f"{found[0]!r} is not allowed"
    if name.startswith(".") or name.endswith("."):
        return "it starts or ends with a dot"
    if _RESERVED.fullmatch(name):
        return "reserved on Windows"
    if "_info_" in name or name.endswith(_NOT_CONSUMERS):
        return "it conflicts with the queue's own files"
    return ""


@dataclass(frozen=True, slots=True)
class QueueFolder:
    """The files of one queue."""

    base: Path
    name: str
    seal: MessageSeal | None = None

    @property
    def extra_bytes(self) -> int:
        """The encryption overhead per message."""
        return 0 if self.seal is None else self.seal.extra_bytes

    @property
    def info_keys(self) -> Path:
        return self.base / f"{self.name}{_INFO_KEYS}"

    @property
    def info_queue(self) -> Path:
        return self.base / f"{self.name}{_INFO_QUEUE}"

    @property
    def lock(self) -> Path:
        return self.base / f"{self.name}_queue.lock"

    def part(self, part: int) -> Path:
        return self.base / f"{self.name}-{part}"

    def data(self, part: int) -> Path:
        return self.part(part) / f"{self.name}_queue"

    def info_push(self, part: int) -> Path:
        return self.part(part) / f"{self.name}_info_push"

    def info_pop(self, consumer: str) -> Path:
        return self.base / f"{self.name}{_INFO_POP}{consumer}"

    def consumer_lock(self, consumer: str) -> Path:
        return self.base / f"{self.name}{_INFO_POP}{consumer}.lock"

    # Contents

    def exists(self) -> bool:
        return self.info_queue.exists() or bool(self.parts())

    def parts(self) -> list[int]:
        """The existing parts, in order."""
        pattern = re.compile(re.escape(self.name) + r"-(0|[1-9][0-9]{0,9})")
        matches = (pattern.fullmatch(name) for name in _names_in(self.base))
        found = sorted(part for match in matches if match and (part := int(match[1])) <= _MAX_PART)
        # An empty folder does not count: a writer was killed while creating it, and the next one will reuse it.
        return [part for part in found if self.data(part).exists() or self.info_push(part).exists()]

    def parts_with_data(self) -> list[int]:
        """The readable ones."""
        return [part for part in self.parts() if self.data(part).exists()]

    def consumers(self) -> list[str]:
        prefix = f"{self.name}{_INFO_POP}"
        names = [name[len(prefix) :] for name in _names_in(self.base) if name.startswith(prefix)]
        return sorted(name for name in names if not _problem_of(name))

    def written_part(self) -> int | None:
        """The part named by info_queue; None if it is missing or damaged."""
        line = read_small(self.info_queue, MAX_LINE_BYTES)
        return None if line is None else parse_queue_line(line, self.name)

    def newest_part(self) -> int:
        """The part that is written to, even if info_queue is damaged."""
        part = self.written_part()
        if part is None:
            parts = self.parts()
            if not parts:
                raise NotFound(f"no queue {self.name} in {self.base}")
            part = parts[-1]
        return part

    def part_info(self, part: int) -> PartInfo | None:
        """The contents of info_push; None if it is missing or damaged."""
        for _ in range(_ATTEMPTS):
            line = read_small(self.info_push(part), MAX_LINE_BYTES)
            info = None if line is None else parse_push_line(line, self.name)
            if info is not None or line is None:
                return info
        return None

    def pop_info(self, consumer: str) -> PopInfo | None:
        """The consumer's commit; None if it is missing or damaged."""
        line = read_small(self.info_pop(consumer), MAX_LINE_BYTES)
        return None if line is None else parse_pop_line(line, self.name, consumer)


def list_queues(base: Path) -> list[str]:
    """The names of the queues in a folder."""
    names = (name.removesuffix(_INFO_QUEUE) for name in _names_in(base) if name.endswith(_INFO_QUEUE))
    return sorted(name for name in names if not _problem_of(name))


def create_folder(folder: Path) -> None:
    with failing_as(FailWrite, f"{folder} cannot be created"):
        folder.mkdir(parents=True, exist_ok=True)


def _names_in(base: Path) -> list[str]:
    with failing_as(FailRead, f"{base} cannot be listed"):
        try:
            return [entry.name for entry in base.iterdir()]
        except FileNotFoundError:
            return []
