"""DescribeUserScramCredentials (50): users' SCRAM mechanisms and iterations."""

from typing import Annotated, ClassVar, Final

from ottla.wire import apis
from ottla.wire.declare import Int8, Int16, Int32, Int64, Message, NullableString, Request, Response, String, Tag

EXPIRY_TAG: Final = 10_000
"""Far from the tags that Kafka may add. Kafka's brokers and tools skip unknown tags (KIP-482)."""


class CredentialInfo(Message, frozen=True, kw_only=True):
    mechanism: Int8
    iterations: Int32
    expires_timestamp_ms: Annotated[Int64, Tag(EXPIRY_TAG, since=0)] = -1
    """Specific to Ottla: when the credential expires; -1 for never."""


class DescribeUserScramCredentialsResult(Message, frozen=True, kw_only=True):
    user: String
    error_code: Int16
    error_message: NullableString
    credential_infos: tuple[CredentialInfo, ...]


class DescribeUserScramCredentialsResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_USER_SCRAM_CREDENTIALS

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString
    results: tuple[DescribeUserScramCredentialsResult, ...]


class UserName(Message, frozen=True, kw_only=True):
    name: String


class DescribeUserScramCredentialsRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_USER_SCRAM_CREDENTIALS
    RESPONSE: ClassVar = DescribeUserScramCredentialsResponse

    users: tuple[UserName, ...] | None
