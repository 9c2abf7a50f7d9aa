"""The offsets that a table contains, as its snapshots say. Pure rules.

The writer puts them into the summary of each snapshot and, in the same commit, into the properties. Snapshots of
others (a compaction) lack them, and the snapshots that have them may have expired: then the table's properties say it,
unless they belong to a later snapshot than the current one, as after a rollback.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from ottla.lake.errors import LakeError
from ottla.lake.names import OFFSETS, WRITER_EPOCH, WRITER_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class Covered:
    topic_id: str = ""
    """In hexadecimal digits; empty if the broker has no topic ids."""
    partitions: dict[int, int] = field(default_factory=dict)
    """The next offset by partition: all committed records below it are in the table or in that of dead letters."""
    epoch: int = 0
    writer: str = ""
    """Which of two writers that wanted this epoch has it."""
    sequence: int = field(default=0, compare=False)
    """The sequence number of the snapshot that says this."""
    first_sequence: int = field(default=0, compare=False)
    """That of the writer's first snapshot: those before it have no records of the topic."""

    def is_newer_writer(self, other: Covered) -> bool:
        """Whether the other one is fenced."""
        return self.epoch > other.epoch or (self.epoch == other.epoch and self.writer != other.writer)

    def as_properties(self) -> dict[str, str]:
        partitions = {str(partition): offset for partition, offset in sorted(self.partitions.items())}
        return {
            OFFSETS: json.dumps(
                {
                    "topic-id": self.topic_id,
                    "partitions": partitions,
                    "sequence": self.sequence,
                    "first-sequence": self.first_sequence,
                },
                separators=(",", ":"),
            ),
            WRITER_EPOCH: str(self.epoch),
            WRITER_ID: self.writer,
        }


class SnapshotFacts(NamedTuple):
    parent_id: int | None
    summary: Mapping[str, str]
    sequence: int = 0
    """0 in tables of Iceberg's format 1, which has no sequence numbers."""


def parse(properties: Mapping[str, str]) -> Covered | None:
    """None if there are no offsets in them."""
    text = properties.get(OFFSETS)
    if text is None:
        return None
    given = json.loads(text)
    partitions = {int(partition): int(offset) for partition, offset in given["partitions"].items()}
    sequences = int(given.get("sequence", 0)), int(given.get("first-sequence", 0))
    return Covered(given.get("topic-id", ""), partitions, *_writer(properties), *sequences)


def _writer(properties: Mapping[str, str]) -> tuple[int, str]:
    return int(properties.get(WRITER_EPOCH, "0")), properties.get(WRITER_ID, "")


def covered_by(properties: Mapping[str, str], current: int | None, snapshots: Mapping[int, SnapshotFacts]) -> Covered:
    """By the current snapshot: from the nearest ancestor that says it, or from the table's properties.

    The writer is always that of the properties, which a rollback does not take back.
    """
    epoch, writer = _writer(properties)
    found = _offsets_of(properties, current, snapshots)
    return replace(found, epoch=epoch, writer=writer)


def _offsets_of(properties: Mapping[str, str], current: int | None, snapshots: Mapping[int, SnapshotFacts]) -> Covered:
    at = current
    while at is not None and at in snapshots:
        if (found := parse(snapshots[at].summary)) is not None:
            return found
        at = snapshots[at].parent_id
    # The end of the history, or an expired snapshot: catalogs do not tell them apart.
    known = parse(properties)
    if known is None or current is None:
        return Covered()
    sequence = snapshots[current].sequence if current in snapshots else known.sequence
    if sequence >= known.sequence:
        return known
    if sequence < known.first_sequence:
        return Covered()
    raise LakeError(
        f"the table was rolled back to snapshot {current}, and the snapshot that had its offsets has expired; roll "
        "forward, or to a snapshot of the writer"
    )


def covered(table: Table) -> Covered:
    """By the current snapshot of a pyiceberg table."""
    about = table.metadata
    snapshots = {
        each.snapshot_id: SnapshotFacts(
            each.parent_snapshot_id,
            each.summary.additional_properties if each.summary is not None else {},
            each.sequence_number or 0,
        )
        for each in about.snapshots
    }
    return covered_by(about.properties, about.current_snapshot_id, snapshots)


def offsets(table: Table) -> dict[int, int]:
    """The next offset by partition, of a pyiceberg table at its current snapshot."""
    return covered(table).partitions
