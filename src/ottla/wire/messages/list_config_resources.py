"""ListConfigResources (74): the resources of the given types with dynamic configs."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int8, Int16, Int32, Message, Request, Response, Since, String


class ConfigResource(Message, frozen=True, kw_only=True):
    resource_name: String
    resource_type: Annotated[Int8, Since(1)] = 16


class ListConfigResourcesResponse(Response, frozen=True, kw_only=True):
    API = apis.LIST_CONFIG_RESOURCES

    throttle_time_ms: Int32 = 0
    error_code: Int16
    config_resources: tuple[ConfigResource, ...]


class ListConfigResourcesRequest(Request, frozen=True, kw_only=True):
    API = apis.LIST_CONFIG_RESOURCES
    RESPONSE: ClassVar = ListConfigResourcesResponse

    resource_types: Annotated[tuple[Int8, ...], Since(1)] = ()
