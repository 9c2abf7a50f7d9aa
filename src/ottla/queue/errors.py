"""The nine errors of v-queue, with its numbers and words.

QueueError
├── NotReady                   cannot be used: closed, failed, opened for reading only, too large a message
│   └── NotFound               there is no such queue, part or consumer
├── FailOpen                   a file cannot be opened
│   └── AlreadyOpen            another writer, or another consumer of this name, has it
├── FailWrite                  the disk refused: nothing of what was asked is in the queue
├── FailRead                   the disk refused to give it back
│   ├── InvalidChecksum        it is not what was written
│   └── FailReadTailMessage    the end of a part is missing
└── Other                      a name that cannot be, a file of another queue
"""

from __future__ import annotations

from typing import ClassVar

from ottla.core.errors import OttlaError


class QueueError(OttlaError):
    code: ClassVar[int]
    """The number that v-queue gives it."""
    saying: ClassVar[str]
    """The words that v-queue has for it."""


class NotReady(QueueError):
    code = -911
    saying = "not ready"


class NotFound(NotReady):
    code = -2
    saying = "not found"


class FailOpen(QueueError):
    code = -4
    saying = "fail open"


class AlreadyOpen(FailOpen):
    code = -8
    saying = "already open"

    def __init__(self, what: str, pid: int | None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(f"{what} is open in {holder}; one at a time can have it")
        self.pid = pid
        """Who has it, where that is known."""


class FailWrite(QueueError):
    code = -7
    saying = "fail write"


class FailRead(QueueError):
    code = -3
    saying = "fail read"


class InvalidChecksum(FailRead):
    code = -6
    saying = "invalid checksum"


class FailReadTailMessage(FailRead):
    code = -5
    saying = "fail read tail message"


class Other(QueueError):
    code = -1
    saying = "other error"
