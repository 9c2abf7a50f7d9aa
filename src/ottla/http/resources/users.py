"""Users with passwords."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.security.passwords import check_password
from ottla.core.security import ScramMechanism
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Done, RequestStruct, Struct
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call
    from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsResult

_ITERATIONS: Final = 4096
_SALT_BYTES: Final = 24
_HASHES: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


class User(Struct, frozen=True, kw_only=True):
    name: str
    mechanisms: list[str]
    expires_ms: str | None
    """When the password expires, in milliseconds since 1970; null for never."""


class UserList(Struct, frozen=True, kw_only=True):
    users: list[User]


class NewPassword(RequestStruct, frozen=True, kw_only=True):
    password: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    valid_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How long it is valid, from now. Without it, as long as `security.password_max_age_ms` says."""


class NewExpiry(RequestStruct, frozen=True, kw_only=True):
    valid_ms: Annotated[int, msgspec.Meta(ge=0)] | None
    """How long the password is valid, from now; null for no limit."""


async def list_users(call: Call) -> UserList:
    answer = await call.ask(DescribeUserScramCredentialsRequest(users=None))
    raise_refusal(answer.error_code, answer.error_message)
    return UserList(users=sorted(map(_user, answer.results), key=lambda one: one.name))


def _user(described: DescribeUserScramCredentialsResult) -> User:
    infos = described.credential_infos
    times = [info.expires_timestamp_ms for info in infos if info.expires_timestamp_ms >= 0]
    mechanisms = [_spelled(info.mechanism) for info in infos]
    return User(name=described.user, mechanisms=mechanisms, expires_ms=str(min(times)) if times else None)


async def set_password(call: Call) -> Done:
    name = call.path("name")
    given = await call.body(NewPassword)
    await asyncio.to_thread(check_password, call.broker.security.config, name, given.password)
    expires_ms = -1 if given.valid_ms is None else _expires_ms(call, given.valid_ms)
    upsertions = await asyncio.to_thread(_upsertions, name, given.password, expires_ms)
    return await _altered(call, AlterUserScramCredentialsRequest(deletions=(), upsertions=upsertions))


async def set_expiry(call: Call) -> Done:
    """Set the expiry of the current password. 0 expires it at once."""
    name = call.path("name")
    given = await call.body(NewExpiry)
    expires_ms = _expires_ms(call, given.valid_ms)
    upsertions = tuple(
        ScramCredentialUpsertion(
            name=name, mechanism=one, iterations=0, salt=b"", salted_password=b"", expires_timestamp_ms=expires_ms
        )
        for one in await _mechanisms_of(call, name)
    )
    return await _altered(call, AlterUserScramCredentialsRequest(deletions=(), upsertions=upsertions))


def _expires_ms(call: Call, valid_ms: int | None) -> int:
    """The expiry as in Kafka's request: 0 for never."""
    return 0 if valid_ms is None else call.broker.clock.now_ms() + valid_ms


async def _mechanisms_of(call: Call, name: str) -> list[ScramMechanism]:
    held = [one for one in (await list_users(call)).users if one.name == name]
    found = [one for one in ScramMechanism if any(_spelled(one) in user.mechanisms for user in held)]
    # An unknown user is rejected for one of the mechanisms.
    return found or [ScramMechanism.SCRAM_SHA_512]


async def delete_user(call: Call) -> Done:
    name = call.path("name")
    deletions = tuple(ScramCredentialDeletion(name=name, mechanism=one) for one in await _mechanisms_of(call, name))
    return await _altered(call, AlterUserScramCredentialsRequest(deletions=deletions, upsertions=()))


async def _altered(call: Call, request: AlterUserScramCredentialsRequest) -> Done:
    for result in (await call.ask(request)).results:
        raise_refusal(result.error_code, result.error_message)
    return Done()


def _upsertions(name: str, password: str, expires_ms: int) -> tuple[ScramCredentialUpsertion, ...]:
    made = []
    for mechanism, kind in _HASHES.items():
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(kind, password.encode("utf-8", "surrogatepass"), salt, _ITERATIONS)
        made.append(
            ScramCredentialUpsertion(
                name=name,
                mechanism=mechanism,
                iterations=_ITERATIONS,
                salt=salt,
                salted_password=salted,
                expires_timestamp_ms=expires_ms,
            )
        )
    return tuple(made)


def _spelled(mechanism: int) -> str:
    return ScramMechanism(mechanism).name.replace("_", "-")


_USER: Final = "/v1/users/{name}"

ENDPOINTS: Final = (
    Endpoint("GET", "/v1/users", list_users, "All users with passwords", answer=UserList),
    Endpoint("PUT", _USER, set_password, "Create a user, or change the password", body=NewPassword, answer=Done),
    Endpoint("PUT", f"{_USER}/expiry", set_expiry, "Change when a password expires", body=NewExpiry, answer=Done),
    Endpoint("DELETE", _USER, delete_user, "Delete a user", answer=Done),
)
