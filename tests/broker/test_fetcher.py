"""What a follower knows about a leader that refuses connections."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

from ottla.broker.replication.fetcher import Fetcher
from ottla.core.ids import Address

_LEADER = 2


def _closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def _replication(port: int) -> Any:
    leader = SimpleNamespace(address=Address("127.0.0.1", port))
    return SimpleNamespace(
        config=SimpleNamespace(replica_fetch_wait_max_ms=100, replica_fetch_backoff_ms=1),
        cluster=SimpleNamespace(view=SimpleNamespace(brokers={_LEADER: leader})),
        node_id=1,
        security=None,
        tls=None,
        broker=None,
        throttling=SimpleNamespace(wait_to_fetch_s=lambda _: 0.0),
    )


def test_a_leader_no_longer_counts_as_refusing_when_nothing_is_fetched_from_it() -> None:
    asyncio.run(_refuse_and_stop_fetching())


async def _refuse_and_stop_fetching() -> None:
    fetcher = Fetcher(_replication(_closed_port()), _LEADER)
    replica: Any = SimpleNamespace(key="t-0", leader_epoch=3)
    try:
        fetcher.add(replica)
        async with asyncio.timeout(20):
            while not fetcher.is_refused:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.001)

        fetcher.remove(replica)

        assert not fetcher.is_refused
    finally:
        await fetcher.stop()
