"""Quotas of bytes and broker time per user and client (KIP-13, KIP-124).

Clients over quota are throttled: they get the response with a throttle time, and are not read from until it has passed.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from msgspec import structs

from ottla.broker.requests.answers import then
from ottla.net.rates import Bucket
from ottla.storage.catalog.entries import QuotaEntity, QuotaEntityType
from ottla.wire.apis import FETCH, PRODUCE, SHARE_FETCH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.storage.catalog.entries import Quota
    from ottla.wire.apis import Api
    from ottla.wire.declare import Request, Response
    from ottla.wire.messages.fetch import FetchResponse
    from ottla.wire.messages.produce import ProduceRequest
    from ottla.wire.messages.share_fetch import ShareFetchResponse

_USER: Final = QuotaEntityType.USER
_CLIENT: Final = QuotaEntityType.CLIENT_ID
_IP: Final = QuotaEntityType.IP
_LONGEST_PAUSE_S: Final = 30.0
_MOST_REMEMBERED: Final = 10_000
_PERCENT: Final = 100.0


class Limit(NamedTuple):
    rate: float
    bucket: Bucket


class Quotas:
    def __init__(self, quotas: Callable[[], Mapping[QuotaEntity, Quota]]) -> None:
        self._quotas = quotas
        self._known_for: Mapping[QuotaEntity, Quota] | None = None
        self._limits: dict[tuple[str, str, str], Limit | None] = {}
        self._buckets: dict[tuple[QuotaEntity, str, str, str], Bucket] = {}

    @property
    def are_for_clients(self) -> bool:
        return any(not _is_for_address(entity) for entity in self._quotas())

    @property
    def are_for_addresses(self) -> bool:
        return any(_is_for_address(entity) for entity in self._quotas())

    def connection_rate(self, host: str) -> float | None:
        """The limit of new connections per second of this address, if configured."""
        for name in (host, None):
            quota = self._quotas().get(QuotaEntity.of({_IP: name}))
            if quota is not None:
                return quota.limits.get("connection_creation_rate")
        return None

    def limit(self, user: str, client_id: str, key: str) -> Limit | None:
        """The quota of this client, shared by all clients to which it applies."""
        quotas = self._quotas()
        if quotas is not self._known_for or len(self._limits) >= _MOST_REMEMBERED:
            self._limits.clear()
            self._known_for = quotas
        wanted = user, client_id, key
        if wanted not in self._limits:
            self._limits[wanted] = self._find(quotas, user, client_id, key)
        return self._limits[wanted]

    def _find(self, quotas: Mapping[QuotaEntity, Quota], user: str, client_id: str, key: str) -> Limit | None:
        for entity in _in_order(user, client_id):
            quota = quotas.get(entity)
            if quota is not None and key in quota.limits:
                # A default quota applies to each user, or each client, separately.
                parts = dict(entity.parts)
                who = entity, key, user if _USER in parts else "", client_id if _CLIENT in parts else ""
                return Limit(quota.limits[key], self._buckets.setdefault(who, Bucket()))
        return None

    def around(self, api: Api, handler: Handler) -> Handler:
        def metered(broker: Broker, request: Request, context: Context) -> NowOrLater:
            began_s = perf_counter()
            answer = handler(broker, request, context)
            took_s = perf_counter() - began_s
            pause_s = self._charge(context, "request_percentage", took_s * _PERCENT)
            if api is PRODUCE:
                pause_s = max(
                    pause_s, self._charge(context, "producer_byte_rate", _produced(cast("ProduceRequest", request)))
                )
            if answer is None:
                _mute(context, pause_s)
                return None
            return then(answer, lambda response: self._finish(api, response, context, pause_s))

        return metered

    def _finish(self, api: Api, response: Response, context: Context, pause_s: float) -> Response:
        if api in (FETCH, SHARE_FETCH):
            pause_s = max(
                pause_s, self._charge(context, "consumer_byte_rate", _fetched(cast("FetchResponse", response)))
            )
        if pause_s <= 0 or "throttle_time_ms" not in response.__struct_fields__:
            return response
        _mute(context, pause_s)
        return structs.replace(response, throttle_time_ms=round(min(pause_s, _LONGEST_PAUSE_S) * 1000))

    def _charge(self, context: Context, key: str, amount: float) -> float:
        user = context.connection.principal.partition(":")[2]
        limit = self.limit(user, context.client_id, key)
        if limit is None or amount <= 0:
            return 0.0
        return limit.bucket.add(amount, limit.rate, asyncio.get_running_loop().time())


def _in_order(user: str, client_id: str) -> tuple[QuotaEntity, ...]:
    """The matching quota entities, the most specific first, as in Kafka."""
    return (
        QuotaEntity.of({_USER: user, _CLIENT: client_id}),
        QuotaEntity.of({_USER: user, _CLIENT: None}),
        QuotaEntity.of({_USER: user}),
        QuotaEntity.of({_USER: None, _CLIENT: client_id}),
        QuotaEntity.of({_USER: None, _CLIENT: None}),
        QuotaEntity.of({_USER: None}),
        QuotaEntity.of({_CLIENT: client_id}),
        QuotaEntity.of({_CLIENT: None}),
    )


def _is_for_address(entity: QuotaEntity) -> bool:
    return any(kind is _IP for kind, _ in entity.parts)


def _mute(context: Context, pause_s: float) -> None:
    if pause_s > 0:
        context.connection.mute_for(min(pause_s, _LONGEST_PAUSE_S))


def _produced(request: ProduceRequest) -> int:
    return sum(len(part.records or b"") for topic in request.topic_data for part in topic.partition_data)


def _fetched(response: FetchResponse | ShareFetchResponse) -> int:
    return sum(len(part.records or b"") for topic in response.responses for part in topic.partitions)
