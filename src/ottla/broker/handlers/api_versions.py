"""ApiVersions (18)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ottla.broker.dispatch import served_apis
from ottla.core.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(_broker: Broker, request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    if context.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
        context.connection.state["software"] = f"{name} {version}"
    return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=served_apis(), finalized_features_epoch=0)
