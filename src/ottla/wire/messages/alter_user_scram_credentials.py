"""AlterUserScramCredentials (51): set or remove users' SCRAM verifiers."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    NullableString,
    Request,
    Response,
    String,
    Tag,
)
from ottla.wire.messages.describe_user_scram_credentials import EXPIRY_TAG


class AlterUserScramCredentialsResult(Message, frozen=True, kw_only=True):
    user: String
    error_code: Int16
    error_message: NullableString


class AlterUserScramCredentialsResponse(Response, frozen=True, kw_only=True):
    API = apis.ALTER_USER_SCRAM_CREDENTIALS

    throttle_time_ms: Int32 = 0
    results: tuple[AlterUserScramCredentialsResult, ...]


class ScramCredentialDeletion(Message, frozen=True, kw_only=True):
    name: String
    mechanism: Int8


class ScramCredentialUpsertion(Message, frozen=True, kw_only=True):
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes
    expires_timestamp_ms: Annotated[Int64, Tag(EXPIRY_TAG, since=0)] = -1
    """Specific to Ottla: when the credential expires; 0 for never, -1 for the broker's default.

    Without a salt and password only the expiry of an existing credential is changed.
    """


class AlterUserScramCredentialsRequest(Request, frozen=True, kw_only=True):
    API = apis.ALTER_USER_SCRAM_CREDENTIALS
    RESPONSE: ClassVar = AlterUserScramCredentialsResponse

    deletions: tuple[ScramCredentialDeletion, ...]
    upsertions: tuple[ScramCredentialUpsertion, ...]
