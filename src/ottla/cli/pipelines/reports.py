"""Status reports of pipelines, read from their topic."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.core.ids import TopicPartition
from ottla.core.pipeline_status import PIPELINES_TOPIC, PipelineStatus, seen_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.cli.connecting import Reach

_PATIENCE_MS: Final = 2000


@dataclass(frozen=True, slots=True)
class SeenPipeline:
    status: PipelineStatus
    age_ms: int

    @property
    def name(self) -> str:
        return self.status.name

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self.status), "seen_ms_ago": self.age_ms}


async def read_statuses(reach: Reach) -> list[SeenPipeline]:
    """The last report of each pipeline, with its state derived from the report's age."""
    latest: dict[bytes, tuple[bytes | None, int]] = {}
    async with reach.client() as client:
        if PIPELINES_TOPIC not in await client.admin.list_topics(include_internal=True):
            return []
        at = TopicPartition(PIPELINES_TOPIC, 0)
        async with client.consumer(auto_offset_reset="earliest") as consumer:
            await consumer.assign([at])
            end = (await consumer.end_offsets(at))[at]
            while await consumer.position(at) < end:
                records = await consumer.poll(1000, _PATIENCE_MS)
                if not records:
                    break
                latest |= {record.key or b"": (record.value, record.timestamp) for record in records}
    return list(_seen(latest, int(time.time() * 1000)))


def _seen(latest: dict[bytes, tuple[bytes | None, int]], now_ms: int) -> Iterator[SeenPipeline]:
    for _, (value, told_ms) in sorted(latest.items()):
        if value is None:
            continue
        try:
            status = msgspec.json.decode(value, type=PipelineStatus)
        except msgspec.DecodeError:
            continue  # not a pipeline's record
        age_ms = max(0, now_ms - told_ms)
        yield SeenPipeline(replace(status, state=seen_state(status.state, age_ms)), age_ms)


def rows(seen: SeenPipeline) -> list[dict[str, object]]:
    head = {"pipeline": seen.name, "state": seen.status.state, "seen": f"{seen.age_ms // 1000} s ago"}
    return [
        {**head, "query": query.name, "rows_read": query.rows, **asdict(query)} for query in seen.status.queries
    ] or [head]
