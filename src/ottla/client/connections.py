"""The open connections: one per broker and purpose, so that long polls do not block other requests."""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

from ottla.client.backoff import Backoff
from ottla.client.errors import BrokerUnavailable, ClientClosed, ConnectionLost
from ottla.client.opening import ConnectionSettings, open_connection
from ottla.wire.frame import SCRATCH_BYTES

if TYPE_CHECKING:
    from ottla.client.config import ClientConfig
    from ottla.client.connection import Connection
    from ottla.core.ids import Address


Key: TypeAlias = "tuple[Address, Purpose, object]"


class Purpose(Enum):
    """The purpose of a connection. A broker answers the requests of one connection in order."""

    ASK = auto()
    PUSH = auto()
    FETCH = auto()
    GROUP = auto()


class Connections:
    def __init__(self, config: ClientConfig) -> None:
        self._backoff = Backoff(config.backoff_first_ms, config.backoff_max_ms)
        self._open: dict[Key, Connection] = {}
        self._opening: dict[Key, asyncio.Task[Connection]] = {}
        self._failures: dict[Address, tuple[int, float]] = {}  # consecutive failures, and the earliest next attempt
        self._is_closed = False
        tls = None if config.security is None else config.security.tls_context()
        self._settings = ConnectionSettings(config, tls, bytearray(config.deserializer_chunk_bytes))
        # Fetch responses are large; reading a few kilobytes per system call would dominate the cost.
        self._fetch_settings = ConnectionSettings(
            config, tls, bytearray(max(SCRATCH_BYTES, config.deserializer_chunk_bytes))
        )

    def existing(self, address: Address, purpose: Purpose, owner: object = None) -> Connection | None:
        connection = self._open.get((address, purpose, owner))
        return connection if connection is not None and connection.is_open else None

    async def get(self, address: Address, purpose: Purpose, owner: object = None) -> Connection:
        """The open connection, or a new one; after failures with a growing delay.

        Each owner has separate connections: the long polls of one consumer do not block another.
        """
        if self._is_closed:
            raise ClientClosed
        if (connection := self.existing(address, purpose, owner)) is not None:
            return connection
        key = address, purpose, owner
        task = self._opening.get(key)
        if task is None:
            task = self._opening[key] = asyncio.create_task(self._connect(address, purpose))
            task.add_done_callback(lambda done: self._opened(key, done))
        try:
            # Others may wait for the same connection: cancelling one waiter must not affect them.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._is_closed and task.cancelled():
                raise ClientClosed from None
            raise

    def is_resting(self, address: Address) -> bool:
        """Whether connecting failed recently, so that a new attempt would be delayed."""
        return self._failures.get(address, (0, 0.0))[1] > asyncio.get_running_loop().time()

    def drop(self, address: Address) -> None:
        """Close the connections to an address that is no longer in use."""
        for key, connection in list(self._open.items()):
            if key[0] == address:
                del self._open[key]
                connection.close(ConnectionLost(f"the broker is no longer at {address}"))

    async def close(self) -> None:
        self._is_closed = True
        opening = list(self._opening.values())
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        connections = list(self._open.values())
        self._open.clear()
        for connection in connections:
            connection.close(ClientClosed())
        await asyncio.gather(*(connection.closed for connection in connections))

    async def _connect(self, address: Address, purpose: Purpose) -> Connection:
        loop = asyncio.get_running_loop()
        failures, not_before = self._failures.get(address, (0, 0.0))
        if (pause_s := not_before - loop.time()) > 0:
            await asyncio.sleep(pause_s)
        settings = self._fetch_settings if purpose is Purpose.FETCH else self._settings
        try:
            connection = await open_connection(address, settings)
        except BrokerUnavailable:
            failures += 1
            self._failures[address] = failures, loop.time() + self._backoff.delay_s(failures)
            raise
        self._failures.pop(address, None)
        return connection

    def _opened(self, key: Key, task: asyncio.Task[Connection]) -> None:
        self._opening.pop(key, None)
        if task.cancelled() or task.exception() is not None:
            return
        connection = task.result()
        if self._is_closed:
            connection.close(ClientClosed())
            return
        self._open[key] = connection
        connection.closed.add_done_callback(lambda _: self._forget(key, connection))

    def _forget(self, key: Key, connection: Connection) -> None:
        if self._open.get(key) is connection:
            del self._open[key]
