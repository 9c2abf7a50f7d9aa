"""The lag of a pipeline's queries before their first report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.blocking.background import Background
    from ottla.client.client import Client


def group_lags(link: Background, groups: Mapping[str, str]) -> dict[str, int]:
    """By query: the lag of its consumer group; none for a query that never ran, or if the broker is unreachable."""
    try:
        return link.call(_lags(link.client, groups))
    except ClientError:
        return {}


async def _lags(client: Client, groups: Mapping[str, str]) -> dict[str, int]:
    return {query: await _lag(client, group) for query, group in groups.items()}


async def _lag(client: Client, group: str) -> int:
    committed = await client.admin.group_offsets(group)
    ends = await client.admin.latest_offsets(committed)
    return sum(max(0, getattr(end, "offset", 0) - committed[at].offset) for at, end in ends.items())
