"""A coordinator killed while its group reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.client.running import run
from tests.clients.processes import Server

from .playing import Crew

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_group_continues_after_its_coordinator_was_killed(tmp_path: Path, assignor: str) -> None:
    async def scenario(server: Server) -> None:
        async with Crew(server.address, "work", 4, assignors=(assignor,)) as group:
            await group.hire()
            await group.hire()
            await group.settle()
            await group.produce(range(200))
            await group.receive(100)
            server.restart("kill")
            await group.produce(range(200, 400))
            await group.receive(400)
            await group.hire()
            await group.settle()
            await group.produce(range(400, 600))
            await group.receive(600)
            for member in list(group.members):
                await group.dismiss(member)
            assert await group.committed() == dict.fromkeys(group.partitions, 150)
            history = await group.history()
            assert all(offsets == sorted(offsets) for offsets in history.values())

    with Server(tmp_path / "data") as server:
        run(scenario(server))
