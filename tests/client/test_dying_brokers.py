"""A real broker is killed, restarted or stopped during requests of the client."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest
from tests.cli.serving import Serve

from ottla.client import Client
from ottla.client.connections import Purpose
from ottla.client.errors import BrokerUnavailable, ConnectFailed, ConnectionLost, RequestTimedOut
from ottla.wire.messages.metadata import MetadataRequest

from .running import LOOPS, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ASK = MetadataRequest(topics=())


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_client_survives_a_broker_kill_and_restart(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario(server: Serve) -> None:
        async with Client(
            server.address, metadata_refresh_retry_count=1, backoff_first_ms=1, backoff_max_ms=10
        ) as client:
            await client.admin.create_topic("kept")
            connection = await client.router.connection(0, Purpose.ASK)
            os.kill(server.process.pid, signal.SIGSTOP)  # or it might answer before it dies
            asked = [connection.ask(ASK) for _ in range(500)]
            server.process.kill()
            server.process.wait()
            outcomes = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(each, ConnectionLost) for each in outcomes)
            with pytest.raises(ConnectFailed, match="Connection refused"):
                await client.topics()
            with Serve(server.folder, "--port", server.address.rpartition(":")[2]):
                assert await client.topics() == ["kept"]

    with Serve(tmp_path) as server:
        run(scenario(server), loop)


def test_a_broker_that_stops_answering_times_out_and_is_found_again(tmp_path: Path) -> None:
    async def scenario(server: Serve) -> None:
        async with Client(
            server.address, request_timeout_ms=500, connect_timeout_ms=500, metadata_refresh_retry_count=1
        ) as client:
            connection = await client.router.connection(0, Purpose.ASK)
            os.kill(server.process.pid, signal.SIGSTOP)
            with pytest.raises(RequestTimedOut):
                await connection.ask(ASK)
            await connection.closed
            with pytest.raises(BrokerUnavailable, match=r"within \d+ ms"):
                await client.topics()
            os.kill(server.process.pid, signal.SIGCONT)
            async with asyncio.timeout(30):
                while True:
                    try:
                        assert await client.topics() == []
                    except BrokerUnavailable:
                        continue
                    break

    with Serve(tmp_path) as server:
        run(scenario(server))
