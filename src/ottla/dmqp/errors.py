"""The errors of a DMQP client.

DmqpError
├── InvalidSequence     the sequence id of a push is not the next one (EINVAL)
├── MessageTooLarge     more than 1 MiB (EMSGSIZE)
├── TooManyConsumers    every shard already has a consumer (EACCES)
├── TopicExists         (EEXIST)
├── NotReached          the broker or a shard is unreachable; the request may have been executed (EIO)
└── Refused             any other error of the broker
"""

from __future__ import annotations

from typing import ClassVar

from ottla.core.errors import OttlaError
from ottla.dmqp.frame import Status


class DmqpError(OttlaError):
    errno: ClassVar[int] = 0
    """DMQP's errno, if there is one."""


class InvalidSequence(DmqpError):
    errno = Status.EINVAL


class MessageTooLarge(DmqpError):
    errno = Status.EMSGSIZE


class TooManyConsumers(DmqpError):
    errno = 13


class TopicExists(DmqpError):
    errno = 17


class NotReached(DmqpError):
    errno = Status.EIO


class Refused(DmqpError):
    """Any other error, with the broker's message."""
