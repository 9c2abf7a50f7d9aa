"""DescribeConfigs (32): configs of topics, brokers and groups, with their sources."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    NullableString,
    Request,
    Response,
    Since,
    String,
)


class DescribeConfigsSynonym(Message, frozen=True, kw_only=True):
    name: String
    value: NullableString
    source: Int8


class DescribeConfigsResourceResult(Message, frozen=True, kw_only=True):
    name: String
    value: NullableString
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool
    synonyms: tuple[DescribeConfigsSynonym, ...]
    config_type: Annotated[Int8, Since(3)] = 0
    documentation: Annotated[NullableString, Since(3)] = None


class DescribeConfigsResult(Message, frozen=True, kw_only=True):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String
    configs: tuple[DescribeConfigsResourceResult, ...]


class DescribeConfigsResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_CONFIGS

    throttle_time_ms: Int32 = 0
    results: tuple[DescribeConfigsResult, ...]


class DescribeConfigsResource(Message, frozen=True, kw_only=True):
    resource_type: Int8
    resource_name: String
    configuration_keys: tuple[String, ...] | None


class DescribeConfigsRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_CONFIGS
    RESPONSE: ClassVar = DescribeConfigsResponse

    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: Bool = False
    include_documentation: Annotated[Bool, Since(3)] = False
