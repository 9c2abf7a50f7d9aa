"""Opens and closes connections to any server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.addresses import parse_address
from ottla.client.config import ClientConfig
from ottla.client.opening import ConnectionSettings, open_connection
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from ottla.client.connection import Connection

LOCALHOST = "127.0.0.1"
SOON = ClientConfig(connect_timeout_ms=200, request_timeout_ms=200)
METADATA = MetadataRequest(topics=None)


def beat(number: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=number, member_id="m")


async def connect(address: str, config: ClientConfig = ClientConfig()) -> Connection:  # noqa: B008 - it is frozen
    return await open_connection(parse_address(address), ConnectionSettings(config, None, bytearray(4096)))


async def close(connection: Connection) -> None:
    connection.close()
    await connection.closed
