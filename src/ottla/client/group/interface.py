"""The interface between a consumer and its group membership.

The membership runs in a separate task, so that heartbeats are sent while the application works. It revokes partitions
only while the application waits for messages, or has none: messages delivered before then count as processed,
and are committed first. Hence the consumer reports when a poll begins and ends:

await member.poll_begins()              the application has processed all delivered messages
…                                       wait, with `deliver`ed partitions only
member.poll_ends(is_busy=bool(records)) it has work; partitions stay until the next poll
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from ottla.client.errors import ClientError
    from ottla.core.ids import TopicPartition

    Listener = Callable[[frozenset[TopicPartition]], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset: the offset of the next message, and metadata."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """Offsets to commit with a transaction: by a group member, or without a member."""

    group: str
    offsets: Mapping[TopicPartition, Committed]
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class Holder(Protocol):
    """The consumer, as seen by its membership. No method may block."""

    def add(self, partitions: Collection[TopicPartition]) -> None:
        """Add assigned partitions; none of their records are delivered before `deliver`."""

    def deliver(self, partitions: Collection[TopicPartition]) -> None:
        """Look up the start positions, unless there was a seek, and deliver."""

    def hold_back(self, partitions: Collection[TopicPartition]) -> None:
        """Stop delivering these partitions: they are about to be revoked."""

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Remove partitions that are no longer owned."""

    def positions(self) -> Mapping[TopicPartition, Committed]:
        """The offsets to commit: after the last message delivered before the latest `poll_begins`."""

    def fail(self, error: ClientError) -> None:
        """Handle a permanent failure of the membership: raise this from calls for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceListener:
    """Callbacks of the application; each may be a coroutine function or a plain one.

    `on_revoked` is called before partitions are revoked, and may still commit; `on_lost` when they are already lost.
    Without `on_lost`, `on_revoked` is called for both.
    """

    on_assigned: Listener | None = None
    on_revoked: Listener | None = None
    on_lost: Listener | None = None
