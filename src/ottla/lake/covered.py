"""The offsets that a table contains, as its snapshots say. Rules only.

The writer puts them into the summary of each snapshot and, in the same commit, into the properties. Snapshots of
others (a compaction) lack them, and the snapshots that have them may have expired: then the table's properties say it.
After a rollback the properties are ahead of the rows, so the summaries are read first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.lake.names import OFFSETS, WRITER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Covered:
    topic_id: str = ""
    """In hexadecimal digits; empty if the broker has no topic ids."""
    partitions: dict[int, int] = field(default_factory=dict)
    """The next offset by partition: all committed records below it are in the table or in that of dead letters."""
    epoch: int = 0

    def as_properties(self) -> dict[str, str]:
        partitions = {str(partition): offset for partition, offset in sorted(self.partitions.items())}
        return {
            OFFSETS: json.dumps({"topic-id": self.topic_id, "partitions": partitions}, separators=(",", ":")),
            WRITER_EPOCH: str(self.epoch),
        }


class SnapshotFacts(NamedTuple):
    parent_id: int | None
    summary: Mapping[str, str]


def parse(properties: Mapping[str, str]) -> Covered | None:
    """None if there are no offsets in them."""
    text = properties.get(OFFSETS)
    if text is None:
        return None
    given = json.loads(text)
    partitions = {int(partition): int(offset) for partition, offset in given["partitions"].items()}
    return Covered(given.get("topic-id", ""), partitions, int(properties.get(WRITER_EPOCH, "0")))


def covered_by(properties: Mapping[str, str], current: int | None, snapshots: Mapping[int, SnapshotFacts]) -> Covered:
    """Of the current snapshot: from the nearest ancestor that says it, or from the table's properties."""
    at = current
    while at is not None:
        facts = snapshots.get(at)
        if facts is None:
            return parse(properties) or Covered()  # expired
        if (found := parse(facts.summary)) is not None:
            return found
        at = facts.parent_id
    # Rolled back to a time before the first commit, or never written by us: the epoch still counts.
    return Covered(epoch=int(properties.get(WRITER_EPOCH, "0")))


def covered(table: Any) -> Covered:  # noqa: ANN401 - pyiceberg's Table
    """Of a pyiceberg table."""
    about = table.metadata
    snapshots = {
        each.snapshot_id: SnapshotFacts(
            each.parent_snapshot_id, each.summary.additional_properties if each.summary is not None else {}
        )
        for each in about.snapshots
    }
    return covered_by(about.properties, about.current_snapshot_id, snapshots)


def offsets(table: Any) -> dict[int, int]:  # noqa: ANN401 - pyiceberg's Table
    """The next offset by partition, of a pyiceberg table at its current snapshot."""
    return covered(table).partitions
