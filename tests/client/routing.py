"""A router to fake brokers, with short waits."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ottla.client.addresses import parse_addresses
from ottla.client.config import ClientConfig
from ottla.client.router import Router
from ottla.wire.messages.heartbeat import HeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .fake_broker import FakeBroker

QUICK = {
    "metadata_refresh_retry_ms": 10,
    "metadata_refresh_retry_count": 2,
    "leader_election_retry_ms": 10,
    "backoff_first_ms": 1,
    "backoff_max_ms": 5,
}
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@asynccontextmanager
async def routing(*brokers: FakeBroker, **options: Any) -> AsyncIterator[Router]:
    config = ClientConfig(**{**QUICK, **options})
    router = Router(parse_addresses([broker.address for broker in brokers]), config)
    try:
        await router.start()
        yield router
    finally:
        await router.close()


async def next_change(router: Router) -> None:
    changed = asyncio.Event()
    unsubscribe = router.subscribe_to_changes(changed.set)
    async with asyncio.timeout(10):
        await changed.wait()
    unsubscribe()
