"""Coordinators of groups and transactional ids: looked up once, and again when stale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.client.connections import Purpose
from ottla.client.errors import broker_error
from ottla.client.retries import RetryBudget
from ottla.client.view import BrokerAddress
from ottla.core.errors import ErrorCode
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from ottla.client.router import Router

_KINDS: Final = ("group", "transactional id")


class Coordinators:
    def __init__(self, router: Router) -> None:
        self._router = router
        self._known: dict[tuple[str, int], int] = {}

    async def find(self, key: str, kind: int) -> int:
        known = self._known.get((key, kind))
        if known is not None and known in self._router.view.brokers:
            return known
        found = await self._find_with_retries(key, kind)
        view = self._router.view
        broker = BrokerAddress(found.node_id, found.host, found.port)
        listed = view.brokers.get(found.node_id)
        if listed is None or listed.address != broker.address:
            self._router.learn(view.with_broker(broker))
        self._known[key, kind] = found.node_id
        return found.node_id

    def forget(self, key: str, kind: int) -> None:
        self._known.pop((key, kind), None)

    async def _find_with_retries(self, key: str, kind: int) -> Coordinator:
        """Look up a coordinator. A starting broker may not know it yet, so errors are retried until the timeout."""
        retries = RetryBudget(self._router)
        while True:
            found = _only(key, await self._router.ask(_request(key, kind), purpose=Purpose.ASK))
            if found.error_code == ErrorCode.NONE:
                return found
            failed = broker_error(found.error_code, f"no coordinator for {_KINDS[kind]} {key!r}", found.error_message)
            if not failed.is_retriable or await retries.is_over():
                raise failed


def _request(key: str, kind: int) -> FindCoordinatorRequest:
    # Version 4 looks up many keys at once; each version uses its own field.
    return FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=(key,))


def _only(key: str, response: FindCoordinatorResponse) -> Coordinator:
    if response.coordinators:
        return response.coordinators[0]
    return Coordinator(
        key=key,
        node_id=response.node_id,
        host=response.host,
        port=response.port,
        error_code=response.error_code,
        error_message=response.error_message,
    )
