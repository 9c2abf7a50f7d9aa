"""DescribeDelegationToken (41): delegation tokens that the client may see (KIP-48)."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bytes, Int16, Int32, Int64, Message, Request, Response, Since, String


class DescribedDelegationTokenRenewer(Message, frozen=True, kw_only=True):
    principal_type: String
    principal_name: String


class DescribedDelegationToken(Message, frozen=True, kw_only=True):
    principal_type: String
    principal_name: String
    token_requester_principal_type: Annotated[String, Since(3)] = ""
    token_requester_principal_name: Annotated[String, Since(3)] = ""
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: String
    hmac: Bytes
    renewers: tuple[DescribedDelegationTokenRenewer, ...]


class DescribeDelegationTokenResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_DELEGATION_TOKEN

    error_code: Int16
    tokens: tuple[DescribedDelegationToken, ...]
    throttle_time_ms: Int32 = 0


class DescribeDelegationTokenOwner(Message, frozen=True, kw_only=True):
    principal_type: String
    principal_name: String


class DescribeDelegationTokenRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_DELEGATION_TOKEN
    RESPONSE: ClassVar = DescribeDelegationTokenResponse

    owners: tuple[DescribeDelegationTokenOwner, ...] | None
