"""Requests to the broker that must handle them: the controller, a coordinator or a partition leader.

If that role has moved to another broker, the request is retried at the new one, until the request timeout.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from ottla.client.connections import Purpose
from ottla.client.errors import BrokerError, BrokerUnavailable, UnsupportedByBroker, broker_error, raise_for
from ottla.client.retries import RetryBudget
from ottla.core.errors import ErrorCode
from ottla.wire.declare import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition
    from ottla.wire.codec import RequestFor


class Described(Protocol):
    """The description of a group in a response."""

    @property
    def error_code(self) -> int: ...

    @property
    def error_message(self) -> str | None: ...


DescribedT = TypeVar("DescribedT", bound=Described)
ItemT = TypeVar("ItemT")
FoundT = TypeVar("FoundT")
ResponseT = TypeVar("ResponseT", bound=Response)

_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class AdminRequests:
    """Shared by the parts of Admin."""

    def __init__(self, router: Router) -> None:
        self._router = router

    @property
    def _timeout_ms(self) -> int:
        return self._router.config.request_timeout_ms

    async def _ask_controller(
        self, request: RequestFor[ResponseT], codes_of: Callable[[ResponseT], Iterable[int]]
    ) -> ResponseT:
        """Send a request to any broker, which forwards it to the controller; older brokers require the controller
        itself.
        """

        async def ask() -> ResponseT:
            controller = self._router.view.controller_id
            node_id = controller if controller in self._router.view.brokers else None
            return await self._router.ask(request, node_id=node_id)

        return await self._until_settled(ask, codes_of, lambda: self._router.refresh(()))

    async def _ask_coordinator(
        self,
        key: str,
        request: RequestFor[ResponseT],
        codes_of: Callable[[ResponseT], Iterable[int]],
        *,
        kind: int = 0,
        max_version: int | None = None,
    ) -> ResponseT:
        """The coordinator of a group (kind 0) or of a transactional id (kind 1)."""

        async def ask() -> ResponseT:
            connection = await self._router.connection(await self._router.coordinator(key, kind), Purpose.ASK)
            return await connection.ask(request, version=connection.version_of(request.API, max_version=max_version))

        async def look_again() -> None:
            self._router.forget_coordinator(key, kind)
            await self._router.refresh(())

        return await self._until_settled(ask, codes_of, look_again)

    async def _find_group(
        self, group: str, request: RequestFor[ResponseT], groups_in: Callable[[ResponseT], Sequence[DescribedT]]
    ) -> DescribedT | None:
        """The coordinator's description of the group; None if there is no such group of the requested type."""

        def codes_of(answer: ResponseT) -> Iterable[int]:
            return (each.error_code for each in groups_in(answer))

        try:
            response = await self._ask_coordinator(group, request, codes_of)
        except UnsupportedByBroker:
            return None
        [found] = groups_in(response)
        if found.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            return None
        raise_for(found.error_code, f"cannot describe group {group!r}", found.error_message)
        return found

    async def _until_settled(
        self,
        ask: Callable[[], Awaitable[ResponseT]],
        codes_of: Callable[[ResponseT], Iterable[int]],
        look_again: Callable[[], Awaitable[None]],
    ) -> ResponseT:
        retries = RetryBudget(self._router)
        while True:
            try:
                response = await ask()
            except BrokerUnavailable as gone:
                if await retries.is_over():
                    raise gone from None
            else:
                if _MOVED.isdisjoint(codes_of(response)) or await retries.is_over():
                    return response
            await look_again()

    async def _ask_leaders(self, asked: LeaderRequest[ItemT, FoundT]) -> dict[TopicPartition, FoundT | BrokerError]:
        """Send the request to each partition's leader; retry partitions without a leader or with a moved one."""
        retries = RetryBudget(self._router)
        found: dict[TopicPartition, FoundT | BrokerError] = {}
        left = dict(asked.items)
        while left:
            answers = await asked.ask_all(self._router, left)
            found.update(answers)
            left = {where: left[where] for where, answer in answers.items() if _has_moved(answer)}
            if left:
                if await retries.is_over():
                    break
                await self._router.refresh({where.topic for where in left})
        return {where: found[where] for where in asked.items}


class LeaderRequest(Generic[ItemT, FoundT]):
    """A request for each of these partitions; `ask` sends it to one broker for the partitions it leads."""

    def __init__(
        self,
        items: Mapping[TopicPartition, ItemT],
        ask: Callable[[int, Mapping[TopicPartition, ItemT]], Awaitable[Mapping[TopicPartition, FoundT | BrokerError]]],
    ) -> None:
        self.items = items
        self._ask = ask

    async def ask_all(
        self, router: Router, items: Mapping[TopicPartition, ItemT]
    ) -> dict[TopicPartition, FoundT | BrokerError]:
        by_leader: dict[int, dict[TopicPartition, ItemT]] = {}
        found: dict[TopicPartition, FoundT | BrokerError] = {}
        unknown = await _unknown_topics(router, {where.topic for where in items})
        for where, item in items.items():
            leader = router.leader(where.topic, where.partition)
            if where.topic in unknown:
                found[where] = unknown[where.topic]
            elif where.partition not in router.view.topics[where.topic].partitions:
                found[where] = broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {where}")
            elif leader < 0:
                found[where] = broker_error(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {where}")
            else:
                by_leader.setdefault(leader, {})[where] = item
        for answers in await asyncio.gather(*(self._ask_one(leader, part) for leader, part in by_leader.items())):
            found.update(answers)
        return found

    async def _ask_one(
        self, leader: int, part: Mapping[TopicPartition, ItemT]
    ) -> Mapping[TopicPartition, FoundT | BrokerError]:
        try:
            return await self._ask(leader, part)
        except BrokerUnavailable as gone:
            return {
                where: broker_error(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {where}", str(gone)) for where in part
            }


async def _unknown_topics(router: Router, names: set[str]) -> dict[str, BrokerError]:
    async def look(name: str) -> tuple[str, BrokerError | None]:
        try:
            await router.topic(name)
        except BrokerError as unknown:
            return name, unknown
        return name, None

    looked = await asyncio.gather(*map(look, names))
    return {name: error for name, error in looked if error is not None}


def _has_moved(answer: object) -> bool:
    return isinstance(answer, BrokerError) and answer.code in _LEADER_MOVED


def raise_if_error(outcome: FoundT | BrokerError) -> FoundT:
    if isinstance(outcome, BrokerError):
        raise outcome
    return outcome
