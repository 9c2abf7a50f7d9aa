"""A member's current assignment, and its reconciliation state."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ottla.groups.consumer.formats import CurrentPartitions, CurrentValue
from ottla.groups.partitions import Assigned, Partition, by_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class MemberState(IntEnum):
    """The reconciliation state, with Kafka's codes."""

    STABLE = 0
    """The member has its target assignment, as of its epoch."""
    UNREVOKED_PARTITIONS = 1
    """The member was told to revoke partitions, and has not confirmed yet."""
    UNRELEASED_PARTITIONS = 2
    """The member waits for partitions that another member has not revoked yet."""
    UNKNOWN = 127


_STATES: Final = {state.value: state for state in MemberState}

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2


class Current(Struct, frozen=True):
    epoch: int = JOINING
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Mapping[Partition, int] = {}
    """The assigned partitions, each with the epoch in which it was assigned."""
    revoked: Mapping[Partition, int] = {}
    """The partitions pending revocation, which the member may still be reading."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def has(self, partitions: Assigned | None) -> bool:
        """Whether all of these partitions are assigned to the member."""
        return partitions is not None and partitions <= self.assigned.keys()

    def to_record(self) -> CurrentValue:
        return CurrentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_topics(self.assigned),
            partitions_pending_revocation=_topics(self.revoked),
        )

    @classmethod
    def from_record(cls, value: CurrentValue) -> Current:
        return cls(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=_STATES.get(value.state, MemberState.UNKNOWN),
            assigned=_partitions(value.assigned_partitions, value.member_epoch),
            revoked=_partitions(value.partitions_pending_revocation, value.member_epoch),
        )


def _topics(partitions: Mapping[Partition, int]) -> tuple[CurrentPartitions, ...]:
    return tuple(
        CurrentPartitions(
            topic_id=topic_id,
            partitions=indexes,
            assignment_epochs=tuple(partitions[Partition(topic_id, index)] for index in indexes),
        )
        for topic_id, indexes in by_topic(partitions)
    )


def _partitions(topics: Iterable[CurrentPartitions], epoch: int) -> dict[Partition, int]:
    """The partitions with their epochs. Before Kafka 4.3 the epoch of each partition was not stored."""
    found: dict[Partition, int] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or ()
        if len(epochs) != len(topic.partitions):
            epochs = (epoch,) * len(topic.partitions)
        found.update(
            (Partition(topic.topic_id, index), each) for index, each in zip(topic.partitions, epochs, strict=True)
        )
    return found
