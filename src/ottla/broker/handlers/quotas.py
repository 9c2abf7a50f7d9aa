"""DescribeClientQuotas (48) and AlterClientQuotas (49), as of KIP-546."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.broker.requests.turns import Turns
from ottla.core.errors import ApiError, ErrorCode, InvalidRequest
from ottla.storage.catalog.catalog import edit_keys
from ottla.storage.catalog.entries import Quota, QuotaEntity, QuotaEntityType
from ottla.storage.catalog.rules import check_quota
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse, EntryResult
from ottla.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.wire.messages import alter_client_quotas as alter

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2
_CLIENT_KEYS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
_IP_KEYS: Final = ("connection_creation_rate",)


class _UnsupportedVersion(ApiError):
    code = ErrorCode.UNSUPPORTED_VERSION


def describe_client_quotas(
    broker: Broker, request: DescribeClientQuotasRequest, _context: Context
) -> DescribeClientQuotasResponse:
    try:
        wanted = _components(request)
    except ApiError as refused:
        return DescribeClientQuotasResponse(error_code=refused.code, error_message=str(refused), entries=None)
    entries = tuple(
        _entry(quota)
        for quota in broker.catalog.view.quotas.values()
        if _matches(dict(quota.entity.parts), wanted, is_strict=request.strict)
    )
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message=None, entries=entries)


def _components(request: DescribeClientQuotasRequest) -> dict[QuotaEntityType, ComponentData]:
    wanted: dict[QuotaEntityType, ComponentData] = {}
    for one in request.components:
        kind = _kind(one.entity_type)
        if kind in wanted:
            raise InvalidRequest(f"{kind.value} is specified twice")
        if one.match_type not in (_EXACT, _DEFAULT, _ANY):
            raise InvalidRequest(f"unknown match type {one.match_type}")
        if (one.match_type == _EXACT) != (one.match is not None):
            raise InvalidRequest("a name is required for an exact match, and not allowed otherwise")
        wanted[kind] = one
    if QuotaEntityType.IP in wanted and len(wanted) > 1:
        raise InvalidRequest("an address cannot be combined with a user or client id")
    return wanted


def _matches(
    entity: dict[QuotaEntityType, str | None], wanted: dict[QuotaEntityType, ComponentData], *, is_strict: bool
) -> bool:
    if is_strict and entity.keys() != wanted.keys():
        return False
    return all(kind in entity and _component_matches(one, entity[kind]) for kind, one in wanted.items())


def _component_matches(component: ComponentData, name: str | None) -> bool:
    if component.match_type == _ANY:
        return True
    return name == component.match if component.match_type == _EXACT else name is None


def _entry(quota: Quota) -> EntryData:
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in sorted(quota.entity.parts)),
        values=tuple(ValueData(key=key, value=value) for key, value in sorted(quota.limits.items())),
    )


async def alter_client_quotas(
    broker: Broker, request: AlterClientQuotasRequest, _context: Context
) -> AlterClientQuotasResponse:
    turns = Turns()
    results = []
    for entry in request.entries:
        if turns.are_over():
            await asyncio.sleep(0)
        code, message = ErrorCode.NONE, None
        try:
            await _alter(broker, entry, is_trial=request.validate_only)
        except ApiError as refused:
            code, message = refused.code, str(refused)
        results.append(EntryResult(error_code=code, error_message=message, entity=entry.entity))
    return AlterClientQuotasResponse(entries=tuple(results))


async def _alter(broker: Broker, entry: alter.EntryData, *, is_trial: bool) -> None:
    parts = {_kind(one.entity_type): one.entity_name for one in entry.entity}
    if len(parts) < len(entry.entity):
        raise InvalidRequest("an entity must contain each of its parts once")
    allowed = _IP_KEYS if QuotaEntityType.IP in parts else _CLIENT_KEYS
    put: dict[str, float] = {}
    removed = []
    for one in entry.ops:
        if one.key not in allowed:
            raise InvalidRequest(f"unknown quota {one.key} for this entity; use one of {', '.join(allowed)}")
        if one.remove:
            removed.append(one.key)
        elif one.value > 0 or (one.value == 0 and one.key in _IP_KEYS):
            put[one.key] = one.value
        else:
            raise InvalidRequest(f"the quota {one.key} must be greater than 0")
    entity = QuotaEntity.of(parts)
    check_quota(Quota(entity, put))
    if not is_trial:
        edit = edit_keys(put, removed)
        await broker.administration.change_catalog(lambda: broker.catalog.change_quota(entity, edit))


def _kind(text: str) -> QuotaEntityType:
    try:
        return QuotaEntityType(text)
    except ValueError:
        raise _UnsupportedVersion(f"unsupported quota entity {text}") from None
