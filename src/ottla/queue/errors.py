"""The nine errors of v-queue, with its codes and texts.

QueueError
├── NotReady                   closed, failed, opened read-only, or a message that is too large
│   └── NotFound               no such queue, part or consumer
├── FailOpen                   a file cannot be opened
│   └── AlreadyOpen            locked by another writer, or another consumer of this name
├── FailWrite                  a write failed: nothing of the call is in the queue
├── FailRead                   a read failed
│   ├── InvalidChecksum        checksum mismatch
│   └── FailReadTailMessage    the end of a part is missing
└── Other                      an invalid name, a file of another queue
"""

from __future__ import annotations

from typing import ClassVar

from ottla.core.errors import OttlaError


class QueueError(OttlaError):
    code: ClassVar[int]
    """v-queue's error code."""
    saying: ClassVar[str]
    """v-queue's error text."""


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
        super().__init__(f"{what} is already open in {holder}")
        self.pid = pid
        """The process that holds the lock, if known."""


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
