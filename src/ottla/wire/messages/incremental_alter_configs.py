"""IncrementalAlterConfigs (44): set, delete, append to or subtract from single configs."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int8, Int16, Int32, Message, NullableString, Request, Response, String


class AlterConfigsResourceResponse(Message, frozen=True, kw_only=True):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String


class IncrementalAlterConfigsResponse(Response, frozen=True, kw_only=True):
    API = apis.INCREMENTAL_ALTER_CONFIGS

    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...]


class AlterableConfig(Message, frozen=True, kw_only=True):
    name: String
    config_operation: Int8
    value: NullableString


class AlterConfigsResource(Message, frozen=True, kw_only=True):
    resource_type: Int8
    resource_name: String
    configs: tuple[AlterableConfig, ...]


class IncrementalAlterConfigsRequest(Request, frozen=True, kw_only=True):
    API = apis.INCREMENTAL_ALTER_CONFIGS
    RESPONSE: ClassVar = IncrementalAlterConfigsResponse

    resources: tuple[AlterConfigsResource, ...]
    validate_only: Bool
