"""ApiVersions (18): the supported API versions.

A client does not know the supported versions yet, so an unsupported version is answered with a version 0 body, error 35
and the table, and the response header is version 0 in every version (KIP-511).
"""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int16, Int32, Int64, Message, Request, Response, Since, String, Tag


class ApiVersion(Message, frozen=True, kw_only=True):
    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(Message, frozen=True, kw_only=True):
    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(Message, frozen=True, kw_only=True):
    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Response, frozen=True, kw_only=True):
    API = apis.API_VERSIONS

    error_code: Int16
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], Tag(0, since=3)] = ()
    finalized_features_epoch: Annotated[Int64, Tag(1, since=3)] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], Tag(2, since=3)] = ()
    zk_migration_ready: Annotated[Bool, Tag(3, since=3)] = False


class ApiVersionsRequest(Request, frozen=True, kw_only=True):
    API = apis.API_VERSIONS
    RESPONSE: ClassVar = ApiVersionsResponse

    client_software_name: Annotated[String, Since(3)] = ""
    client_software_version: Annotated[String, Since(3)] = ""
