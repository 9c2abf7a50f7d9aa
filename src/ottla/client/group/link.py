"""A member's connection to its group coordinator.

A broker answers the requests of one connection in order, and a JoinGroup may wait for minutes. So each member has a
separate connection for that, and commits use another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ottla.client.connections import Purpose
from ottla.client.errors import BrokerUnavailable
from ottla.wire.declare import Response

if TYPE_CHECKING:
    from ottla.client.connection import Connection
    from ottla.client.router import Router
    from ottla.wire.codec import RequestFor

ResponseT = TypeVar("ResponseT", bound=Response)


class CoordinatorLink:
    def __init__(self, router: Router, group: str) -> None:
        self._router = router
        self._group = group
        self._connection: Connection | None = None

    async def ask(self, request: RequestFor[ResponseT], timeout_s: float | None = None) -> ResponseT:
        """Send a request to the coordinator; if it is unreachable, look it up again the next time."""
        try:
            node_id = await self._router.coordinator(self._group)
            self._connection = await self._router.connection(node_id, Purpose.GROUP, owner=self)
            return await self._connection.ask(request, timeout_s=timeout_s)
        except BrokerUnavailable:
            self.forget()
            raise

    def forget(self) -> None:
        """Forget the coordinator, which has moved or is gone."""
        self._router.forget_coordinator(self._group)
        self.hang_up()

    def hang_up(self) -> None:
        """Abandon a pending response; the next request uses another connection."""
        if self._connection is not None and self._connection.is_open:
            self._connection.close()
        self._connection = None

    async def close(self) -> None:
        connection = self._connection
        self.hang_up()
        if connection is not None:
            await connection.closed
