"""ApiVersions (18)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ottla.broker.requests.dispatch import served_versions
from ottla.core.errors import ErrorCode
from ottla.wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FEATURES_FROM_ZERO_SINCE: Final = 4
_TRANSACTION_VERSION: Final = "transaction.version"
_GROUP_VERSION: Final = "group.version"
_SHARE_VERSION: Final = "share.version"
_SUPPORTED: Final = (
    SupportedFeatureKey(name=_GROUP_VERSION, min_version=0, max_version=1),
    SupportedFeatureKey(name=_SHARE_VERSION, min_version=0, max_version=1),
    SupportedFeatureKey(name=_TRANSACTION_VERSION, min_version=0, max_version=2),
)
_FINALIZED: Final = (
    # Announces consumer groups (KIP-848).
    FinalizedFeatureKey(name=_GROUP_VERSION, max_version_level=1, min_version_level=1),
    # Announces share groups (KIP-932).
    FinalizedFeatureKey(name=_SHARE_VERSION, max_version_level=1, min_version_level=1),
    # Announces that every end of a transaction bumps the producer epoch (KIP-890).
    FinalizedFeatureKey(name=_TRANSACTION_VERSION, max_version_level=2, min_version_level=2),
)


def api_versions(_broker: Broker, request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    if context.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
        context.connection.state["software"] = f"{name} {version}"
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=served_versions(),
        # Version 3 cannot express a minimum of 0 (KAFKA-17011), and Kafka omits such features.
        supported_features=_SUPPORTED if context.version >= _FEATURES_FROM_ZERO_SINCE else (),
        finalized_features_epoch=0,
        finalized_features=_FINALIZED,
    )
