"""ExpireDelegationToken (40): change when a delegation token expires, or delete it (KIP-48)."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bytes, Int16, Int32, Int64, Request, Response


class ExpireDelegationTokenResponse(Response, frozen=True, kw_only=True):
    API = apis.EXPIRE_DELEGATION_TOKEN

    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = 0


class ExpireDelegationTokenRequest(Request, frozen=True, kw_only=True):
    API = apis.EXPIRE_DELEGATION_TOKEN
    RESPONSE: ClassVar = ExpireDelegationTokenResponse

    hmac: Bytes
    expiry_time_period_ms: Int64
