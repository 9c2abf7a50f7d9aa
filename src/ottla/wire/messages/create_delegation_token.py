"""CreateDelegationToken (38): a token with which its owner can log in (KIP-48)."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bytes, Int16, Int32, Int64, Message, NullableString, Request, Response, Since, String


class CreateDelegationTokenResponse(Response, frozen=True, kw_only=True):
    API = apis.CREATE_DELEGATION_TOKEN

    error_code: Int16
    principal_type: String
    principal_name: String
    token_requester_principal_type: Annotated[String, Since(3)] = ""
    token_requester_principal_name: Annotated[String, Since(3)] = ""
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes
    throttle_time_ms: Int32 = 0


class CreatableRenewers(Message, frozen=True, kw_only=True):
    principal_type: String
    principal_name: String


class CreateDelegationTokenRequest(Request, frozen=True, kw_only=True):
    API = apis.CREATE_DELEGATION_TOKEN
    RESPONSE: ClassVar = CreateDelegationTokenResponse

    owner_principal_type: Annotated[NullableString, Since(3)] = ""
    owner_principal_name: Annotated[NullableString, Since(3)] = ""
    renewers: tuple[CreatableRenewers, ...]
    max_lifetime_ms: Int64
