"""SaslAuthenticate (36): one step of the SASL exchange that SaslHandshake chose."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bytes, Int16, Int64, NullableString, Request, Response, Since


class SaslAuthenticateResponse(Response, frozen=True, kw_only=True):
    API = apis.SASL_AUTHENTICATE

    error_code: Int16
    error_message: NullableString
    auth_bytes: Bytes
    session_lifetime_ms: Annotated[Int64, Since(1)] = 0


class SaslAuthenticateRequest(Request, frozen=True, kw_only=True):
    API = apis.SASL_AUTHENTICATE
    RESPONSE: ClassVar = SaslAuthenticateResponse

    auth_bytes: Bytes
