"""AlterClientQuotas (49): set or remove quotas."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Float64, Int16, Int32, Message, NullableString, Request, Response, String


class EntityData(Message, frozen=True, kw_only=True):
    entity_type: String
    entity_name: NullableString


class EntryResult(Message, frozen=True, kw_only=True):
    error_code: Int16
    error_message: NullableString
    entity: tuple[EntityData, ...]


class AlterClientQuotasResponse(Response, frozen=True, kw_only=True):
    API = apis.ALTER_CLIENT_QUOTAS

    throttle_time_ms: Int32 = 0
    entries: tuple[EntryResult, ...]


class OpData(Message, frozen=True, kw_only=True):
    key: String
    value: Float64
    remove: Bool


class EntryData(Message, frozen=True, kw_only=True):
    entity: tuple[EntityData, ...]
    ops: tuple[OpData, ...]


class AlterClientQuotasRequest(Request, frozen=True, kw_only=True):
    API = apis.ALTER_CLIENT_QUOTAS
    RESPONSE: ClassVar = AlterClientQuotasResponse

    entries: tuple[EntryData, ...]
    validate_only: Bool
