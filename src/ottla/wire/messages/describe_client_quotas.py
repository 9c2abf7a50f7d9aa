"""DescribeClientQuotas (48): the quotas that match a filter."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    Message,
    NullableString,
    Request,
    Response,
    String,
)


class EntityData(Message, frozen=True, kw_only=True):
    entity_type: String
    entity_name: NullableString


class ValueData(Message, frozen=True, kw_only=True):
    key: String
    value: Float64


class EntryData(Message, frozen=True, kw_only=True):
    entity: tuple[EntityData, ...]
    values: tuple[ValueData, ...]


class DescribeClientQuotasResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_CLIENT_QUOTAS

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString
    entries: tuple[EntryData, ...] | None


class ComponentData(Message, frozen=True, kw_only=True):
    entity_type: String
    match_type: Int8
    match: NullableString


class DescribeClientQuotasRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_CLIENT_QUOTAS
    RESPONSE: ClassVar = DescribeClientQuotasResponse

    components: tuple[ComponentData, ...]
    strict: Bool
