"""Delays requests about the cluster while a node starts, until it knows its cluster.

Some clients cache the first response for minutes, or retry controller -1 until they time out.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.requests.answers import settled
from ottla.cluster.state import NO_NODE

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Answer, Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.cluster.state import Cluster, ViewChange
    from ottla.wire.declare import Request

_logger: Final = logging.getLogger(__name__)

_MOST_S: Final = 10.0
"""After this time the current state is returned, even without a controller."""


class StartupWait:
    def __init__(self, cluster: Cluster, least_nodes: int) -> None:
        self._cluster = cluster
        self._least_nodes = least_nodes
        self._is_joined = False
        self._over = asyncio.Event()
        cluster.listen(self._learnt)

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def joined(self) -> None:
        """Handle the registration of this node."""
        self._is_joined = True
        self._look()

    def _learnt(self, _change: ViewChange) -> None:
        if not self.is_over:
            self._look()

    def _look(self) -> None:
        view = self._cluster.view
        has_controller = view.controller_id != NO_NODE and view.controller_id in view.brokers
        is_there = self._is_joined and self._cluster.node_id in view.brokers
        if has_controller and is_there and len(view.brokers) >= self._least_nodes:
            self._over.set()

    def around(self, handler: Handler) -> Handler:
        if self.is_over:
            return handler

        def held(broker: Broker, request: Request, context: Context) -> NowOrLater:
            if self.is_over:
                return handler(broker, request, context)
            return self._later(handler, broker, request, context)

        return held

    async def _later(self, handler: Handler, broker: Broker, request: Request, context: Context) -> Answer:
        try:
            async with asyncio.timeout(_MOST_S):
                await self._over.wait()
        except TimeoutError:
            _logger.warning("no controller, or not all brokers registered, after %d s", _MOST_S)
            self._over.set()
        answer: Answer = await settled(handler(broker, request, context))
        return answer
