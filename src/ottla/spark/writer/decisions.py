"""The decision to commit a micro-batch, stored before the first of its transactions is committed. If the driver dies
between two commits, the next one finds the remaining transactions here. The decision is metadata of a consumer group
of the sink, which brokers limit to 4096 bytes; a longer one is continued in further groups, which are written first.
Nothing is removed: a decision is replaced by that of the next micro-batch.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.client.admin.offsets import CommittedOffset
from ottla.spark.errors import SinkError
from ottla.spark.writer.attempts import query_group
from ottla.spark.writer.transactions import Prepared  # noqa: TC001 - read at run time, by what decodes it

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin

_MOST_BYTES: Final = 3800


class Decision(msgspec.Struct, frozen=True):
    batch: int
    task_count: int
    prepared: tuple[Prepared, ...]
    revision: int = 0
    """Increased by a new decision, if some transactions of the micro-batch were aborted nevertheless."""


class _Part(msgspec.Struct, frozen=True):
    decision: Decision
    """A part of the prepared transactions."""
    further_groups: int = 0

    @property
    def age(self) -> tuple[int, int]:
        return self.decision.batch, self.decision.revision


async def read_decision(admin: Admin, query_id: str, batch: int) -> Decision | None:
    """The last decision of a query, if it is about this micro-batch or a later one."""
    parts = await _read(admin, _group(query_id))
    first = max(parts, key=lambda part: part.age, default=None)
    if first is None or first.decision.batch < batch:
        return None
    prepared = first.decision.prepared
    for number in range(first.further_groups):
        group = _group(query_id, first.decision.revision, number)
        further = [part for part in await _read(admin, group) if part.age == first.age]
        if not further:
            raise SinkError(f"group {group!r} no longer has the decision on micro-batch {batch}")
        prepared += further[0].decision.prepared
    return msgspec.structs.replace(first.decision, prepared=prepared)


async def write_decision(admin: Admin, query_id: str, decision: Decision) -> None:
    first, *further = _divided(decision)
    await asyncio.gather(
        *(
            _write(admin, _group(query_id, decision.revision, number), _Part(part))
            for number, part in enumerate(further)
        )
    )
    await _write(admin, _group(query_id), _Part(first, len(further)))


def _divided(decision: Decision) -> list[Decision]:
    prepared = decision.prepared
    if len(prepared) == 1 or len(msgspec.json.encode(decision)) <= _MOST_BYTES:
        return [decision]
    middle = len(prepared) // 2
    halves = (msgspec.structs.replace(decision, prepared=half) for half in (prepared[:middle], prepared[middle:]))
    return [part for half in halves for part in _divided(half)]


async def _read(admin: Admin, group: str) -> list[_Part]:
    found = await admin.group_offsets(group)
    return [msgspec.json.decode(each.metadata, type=_Part) for each in found.values()]


async def _write(admin: Admin, group: str, part: _Part) -> None:
    first = part.decision.prepared[0]
    committed = {first.at: CommittedOffset(first.offset, metadata=msgspec.json.encode(part).decode())}
    for refused in (await admin.alter_group_offsets(group, committed)).values():
        if refused is not None:
            raise refused


def _group(query_id: str, revision: int | None = None, number: int = 0) -> str:
    group = f"{query_group(query_id)}-decided"
    # Two consecutive decisions have separate parts: a crash must not mix them.
    return group if revision is None else f"{group}-{revision % 2}-{number}"
