"""When a broker deletes the folder of a partition that it no longer holds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.cluster.state import NO_NODE

from .memory import brokers_of, until
from .test_replication import in_loop, produce

if TYPE_CHECKING:
    from pathlib import Path


@in_loop
async def test_a_folder_is_kept_until_another_replica_leads(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"v")
        folder = tmp_path / "3" / "t-0"
        assert folder.exists()

        brokers.catalog.elect(brokers.key, NO_NODE, isr=(1, 2))
        brokers.catalog.change(brokers.key, replicas=(1, 2))
        await until(lambda: brokers.replica(3).state == brokers.state())
        await asyncio.sleep(0)
        assert folder.exists()

        brokers.catalog.elect(brokers.key, 1, isr=(1, 2))
        await until(lambda: not folder.exists())
