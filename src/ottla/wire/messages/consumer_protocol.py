"""The embedded consumer protocol: JoinGroup's `metadata` and SyncGroup's `assignment`."""

from typing import Annotated

from ottla.wire.declare import Int32, Message, NullableBytes, NullableString, Since, String, Trailed


class TopicPartitions(Message, frozen=True, kw_only=True):
    topic: String
    partitions: tuple[Int32, ...]


class Subscription(Trailed, frozen=True, kw_only=True):
    topics: tuple[String, ...]
    user_data: NullableBytes = None
    owned_partitions: Annotated[tuple[TopicPartitions, ...], Since(1)] = ()
    generation_id: Annotated[Int32, Since(2)] = -1
    rack_id: Annotated[NullableString, Since(3)] = None


class Assignment(Trailed, frozen=True, kw_only=True):
    assigned_partitions: tuple[TopicPartitions, ...]
    user_data: NullableBytes = None


class PreviousAssignment(Trailed, frozen=True, kw_only=True):
    """User data of the sticky assignor. It has no version: readers try the newer format first."""

    previous_assignment: tuple[TopicPartitions, ...]
    generation: Annotated[Int32, Since(1)] = -1
