"""RenewDelegationToken (39): prolong a delegation token (KIP-48)."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bytes, Int16, Int32, Int64, Request, Response


class RenewDelegationTokenResponse(Response, frozen=True, kw_only=True):
    API = apis.RENEW_DELEGATION_TOKEN

    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = 0


class RenewDelegationTokenRequest(Request, frozen=True, kw_only=True):
    API = apis.RENEW_DELEGATION_TOKEN
    RESPONSE: ClassVar = RenewDelegationTokenResponse

    hmac: Bytes
    renew_period_ms: Int64
