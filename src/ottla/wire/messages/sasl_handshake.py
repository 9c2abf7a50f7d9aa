"""SaslHandshake (17): choose a SASL mechanism."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Request, Response, String


class SaslHandshakeResponse(Response, frozen=True, kw_only=True):
    API = apis.SASL_HANDSHAKE

    error_code: Int16
    mechanisms: tuple[String, ...]


class SaslHandshakeRequest(Request, frozen=True, kw_only=True):
    API = apis.SASL_HANDSHAKE
    RESPONSE: ClassVar = SaslHandshakeResponse

    mechanism: String
