"""What can go wrong with a DMQP client.

DmqpError
├── InvalidSequence     the sequence id of a push is not the next one (EINVAL)
├── MessageTooLarge     more than 1 MiB (EMSGSIZE)
├── TooManyConsumers    as many as there are shards are registered already (EACCES)
├── TopicExists         (EEXIST)
├── NotReached          the broker or a shard cannot be reached; what was asked may be done or not (EIO)
└── Refused             anything else that the broker says no to
"""

from __future__ import annotations

from typing import ClassVar

from ottla.core.errors import OttlaError
from ottla.dmqp.frame import Status


class DmqpError(OttlaError):
    errno: ClassVar[int] = 0
    """The number that DMQP has for it, where it has one."""


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
    """With what the broker said."""
