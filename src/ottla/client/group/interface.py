"""What a consumer and its membership in a group are to each other.

The membership lives in a task of its own, so that heartbeats go out while the application works. It takes partitions
away only while the application waits for messages, or has got none: what was handed to it before counts as done then,
and is committed first. Hence the consumer says when a poll begins and ends:

    await member.poll_begins()              the application is done with all that it was given
    …                                       wait, with `deliver`ed partitions only
    member.poll_ends(is_busy=bool(records)) it has work; partitions stay until it comes back
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
    """How far a group has read: the offset of the next message, and a note."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """How far a group has read, to be committed with a transaction: by a member in a generation, or by nobody."""

    group: str
    offsets: Mapping[TopicPartition, Committed]
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class Holder(Protocol):
    """The consumer, as its membership sees it. Nothing here may wait."""

    def add(self, partitions: Collection[TopicPartition]) -> None:
        """They are this member's now; nothing of them is delivered before `deliver`."""

    def deliver(self, partitions: Collection[TopicPartition]) -> None:
        """Find out where to begin, unless somebody has sought a place, and deliver."""

    def hold_back(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver nothing of these any more: they are about to go."""

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """They are this member's no more."""

    def positions(self) -> Mapping[TopicPartition, Committed]:
        """What may be committed: past the last message that was handed out before the latest `poll_begins`."""

    def fail(self, error: ClientError) -> None:
        """The membership has ended for good: whoever waits for messages, or asks for them, gets this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceListener:
    """What the application wants to hear of; each may be a coroutine function or a plain one.

    `on_revoked` comes before the partitions go, and may still commit; `on_lost` when they are gone already. Without
    `on_lost`, `on_revoked` is called for both.
    """

    on_assigned: Listener | None = None
    on_revoked: Listener | None = None
    on_lost: Listener | None = None
