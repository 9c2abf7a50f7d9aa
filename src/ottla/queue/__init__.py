"""A durable queue in a folder: no broker, no network. The files are v-queue's (v2).

queue          Queue: push, and everything about a whole queue
consumer       Consumer: pop, commit, seek
record         a message and its 25-byte header
info_files     the three kinds of small text files
folder         where everything is, and what there is
group_commit   one sync for many threads
part_writer    one part, being written
encode         what a push writes
part_reader    one part, being read, past whatever is damaged in it
positions      where a consumer begins
tails          where a part really ends
sealing        encrypted queues
removal        which parts nobody needs any more
checking       verify and repair
damage         what is found damaged, and whom it is told to
locks, files   what differs between operating systems
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
