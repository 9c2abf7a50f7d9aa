"""A durable queue in a folder: no broker, no network. The files are v-queue's (v2).

queue          Queue: push, and queue-wide operations
consumer       Consumer: pop, commit, seek
record         a message and its 25-byte header
info_files     the three kinds of small text files
folder         paths and directory listing
group_commit   one fsync for many threads
part_writer    writing a part
encode         encoding of a push
part_reader    reading a part, skipping corrupt data
positions      start positions of consumers
tails          the actual end of a part
sealing        encrypted queues
removal        removal of consumed parts
checking       verify and repair
damage         reports of corruption
locks, files   differences between operating systems
"""

from ottla.core.keys import KeyRing, read_key_file
from ottla.queue.checking import repair, verify
from ottla.queue.config import QueueConfig
from ottla.queue.consumer import Consumer
from ottla.queue.damage import Damage
from ottla.queue.errors import (
    AlreadyOpen,
    FailOpen,
    FailRead,
    FailReadTailMessage,
    FailWrite,
    InvalidChecksum,
    NotFound,
    NotReady,
    Other,
    QueueError,
)
from ottla.queue.folder import list_queues
from ottla.queue.positions import Position
from ottla.queue.queue import Queue
from ottla.queue.record import Message
from ottla.queue.removal import delete_queue

__all__ = [
    "AlreadyOpen",
    "Consumer",
    "Damage",
    "FailOpen",
    "FailRead",
    "FailReadTailMessage",
    "FailWrite",
    "InvalidChecksum",
    "KeyRing",
    "Message",
    "NotFound",
    "NotReady",
    "Other",
    "Position",
    "Queue",
    "QueueConfig",
    "QueueError",
    "delete_queue",
    "list_queues",
    "read_key_file",
    "repair",
    "verify",
]
