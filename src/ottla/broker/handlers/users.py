"""DescribeUserScramCredentials (50) and AlterUserScramCredentials (51) (KIP-554)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.broker.requests.turns import Turns
from ottla.broker.security.passwords import expiry
from ottla.core.errors import ApiError, ErrorCode, ResourceNotFound
from ottla.net.sasl.scram import MAX_ITERATIONS, MIN_ITERATIONS, verifier_of
from ottla.storage.catalog.entries import NO_USER, ScramCredential, ScramMechanism
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.net.sasl.scram import MadeVerifier

_logger: Final = logging.getLogger(__name__)

_DIGEST_BYTES: Final = {ScramMechanism.SCRAM_SHA_256: 32, ScramMechanism.SCRAM_SHA_512: 64}
_MOST_NAME_BYTES: Final = 255


class _DuplicateResource(ApiError):
    code = ErrorCode.DUPLICATE_RESOURCE


class _UnacceptableCredential(ApiError):
    code = ErrorCode.UNACCEPTABLE_CREDENTIAL


class _UnsupportedMechanism(ApiError):
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


def describe_user_scram_credentials(
    broker: Broker, request: DescribeUserScramCredentialsRequest, _context: Context
) -> DescribeUserScramCredentialsResponse:
    known: dict[str, list[ScramCredential]] = {}
    for credential in broker.catalog.view.credentials.values():
        if credential.user != NO_USER:
            known.setdefault(credential.user, []).append(credential)
    asked = Counter(one.name for one in request.users or ()) or Counter(sorted(known))
    results = tuple(_described(name, times, known.get(name)) for name, times in asked.items())
    return DescribeUserScramCredentialsResponse(error_code=ErrorCode.NONE, error_message=None, results=results)


def _described(name: str, times: int, held: list[ScramCredential] | None) -> DescribeUserScramCredentialsResult:
    code, message = ErrorCode.NONE, None
    if times > 1:
        code, message = ErrorCode.DUPLICATE_RESOURCE, f"Cannot describe user {name} more than once in one request"
    elif held is None:
        code, message = ErrorCode.RESOURCE_NOT_FOUND, f"There is no user {name} with a SCRAM credential"
    infos = [
        CredentialInfo(
            mechanism=one.mechanism,
            iterations=one.iterations,
            expires_timestamp_ms=-1 if one.expires_ms is None else one.expires_ms,
        )
        for one in held or ()
    ]
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=code,
        error_message=message,
        credential_infos=() if code else tuple(sorted(infos, key=lambda info: info.mechanism)),
    )


async def alter_user_scram_credentials(
    broker: Broker, request: AlterUserScramCredentialsRequest, context: Context
) -> AlterUserScramCredentialsResponse:
    """Apply all changes of a user, or none."""
    changes: dict[str, list[ScramCredentialDeletion | ScramCredentialUpsertion]] = {}
    for deletion in request.deletions:
        changes.setdefault(deletion.name, []).append(deletion)
    for upsertion in request.upsertions:
        changes.setdefault(upsertion.name, []).append(upsertion)
    results, turns = [], Turns()
    for name, all_wanted in changes.items():
        if turns.are_over():
            await asyncio.sleep(0)
        code, message = ErrorCode.NONE, None
        try:
            await _alter(broker, all_wanted)
            _logger.info("changed the credentials of user %r for %s", name, context)
        except ApiError as refused:
            code, message = refused.code, str(refused)
        results.append(AlterUserScramCredentialsResult(user=name, error_code=code, error_message=message))
    return AlterUserScramCredentialsResponse(results=tuple(results))


async def _alter(broker: Broker, wanted: list[ScramCredentialDeletion | ScramCredentialUpsertion]) -> None:
    if len({one.mechanism for one in wanted}) < len(wanted):
        raise _DuplicateResource("A user credential cannot be altered twice in the same request")
    made = [_checked(broker, one) for one in wanted]

    def change() -> None:
        for credential, one in zip(made, wanted, strict=True):
            if credential is None:
                broker.catalog.delete_credential(one.name, ScramMechanism(one.mechanism))
            else:
                broker.catalog.put_credential(credential)

    await broker.administration.change_catalog(change)


def _checked(broker: Broker, wanted: ScramCredentialDeletion | ScramCredentialUpsertion) -> ScramCredential | None:
    """The credential to store; None for a valid deletion."""
    if not wanted.name:
        raise _UnacceptableCredential("Username must not be empty")
    if len(wanted.name.encode("utf-8", "surrogatepass")) > _MOST_NAME_BYTES:
        raise _UnacceptableCredential(f"Username must not be longer than {_MOST_NAME_BYTES} bytes")
    try:
        mechanism = ScramMechanism(wanted.mechanism)
    except ValueError:
        raise _UnsupportedMechanism("Unknown SCRAM mechanism") from None
    if isinstance(wanted, ScramCredentialDeletion):
        if (wanted.name, mechanism) not in broker.catalog.view.credentials:
            raise ResourceNotFound("Attempt to delete a user credential that does not exist")
        return None
    expires_ms = expiry(broker.security.config, wanted.expires_timestamp_ms, broker.clock.now_ms())
    if wanted.expires_timestamp_ms != -1 and not (wanted.salt or wanted.salted_password or wanted.iterations):
        held = broker.catalog.view.credentials.get((wanted.name, mechanism))
        if held is None:
            raise ResourceNotFound("Attempt to change the expiry of a user credential that does not exist")
        return replace(held, expires_ms=expires_ms)
    made = _verifier(mechanism, wanted)
    keys = made.stored_key, made.server_key
    return ScramCredential(wanted.name, mechanism, made.salt, made.iterations, *keys, expires_ms)


def _verifier(mechanism: ScramMechanism, wanted: ScramCredentialUpsertion) -> MadeVerifier:
    if wanted.iterations < MIN_ITERATIONS:
        raise _UnacceptableCredential(f"Too few iterations: at least {MIN_ITERATIONS}")
    if wanted.iterations > MAX_ITERATIONS:
        raise _UnacceptableCredential(f"Too many iterations: at most {MAX_ITERATIONS}")
    if not wanted.salt or len(wanted.salted_password) != _DIGEST_BYTES[mechanism]:
        raise _UnacceptableCredential(
            "The salt is empty, or the size of the salted password does not match the mechanism"
        )
    name = mechanism.name.replace("_", "-")
    return verifier_of(name, wanted.salt, wanted.iterations, wanted.salted_password)
