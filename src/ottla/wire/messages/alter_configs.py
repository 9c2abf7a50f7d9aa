"""AlterConfigs (33): replace all configs of a resource; others are reset to their default."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int8, Int16, Int32, Message, NullableString, Request, Response, String


class AlterConfigsResourceResponse(Message, frozen=True, kw_only=True):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String


class AlterConfigsResponse(Response, frozen=True, kw_only=True):
    API = apis.ALTER_CONFIGS

    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...]


class AlterableConfig(Message, frozen=True, kw_only=True):
    name: String
    value: NullableString


class AlterConfigsResource(Message, frozen=True, kw_only=True):
    resource_type: Int8
    resource_name: String
    configs: tuple[AlterableConfig, ...]


class AlterConfigsRequest(Request, frozen=True, kw_only=True):
    API = apis.ALTER_CONFIGS
    RESPONSE: ClassVar = AlterConfigsResponse

    resources: tuple[AlterConfigsResource, ...]
    validate_only: Bool
