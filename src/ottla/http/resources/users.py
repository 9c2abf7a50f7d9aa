"""Users with passwords."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.security.checks import check_password
from ottla.core.security import ScramMechanism
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Done, Given, Struct
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call

_ITERATIONS: Final = 4096
_SALT_BYTES: Final = 24
_HASHES: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


class User(Struct, frozen=True, kw_only=True):
    name: str
    mechanisms: list[str]


class UserList(Struct, frozen=True, kw_only=True):
    users: list[User]


class NewPassword(Given, frozen=True, kw_only=True):
    password: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


async def list_users(call: Call) -> UserList:
    answer = await call.ask(DescribeUserScramCredentialsRequest(users=None))
    raise_refusal(answer.error_code, answer.error_message)
    users = [
        User(name=one.user, mechanisms=[_spelled(info.mechanism) for info in one.credential_infos])
        for one in answer.results
    ]
    return UserList(users=sorted(users, key=lambda one: one.name))


async def set_password(call: Call) -> Done:
    name = call.path("name")
    given = await call.body(NewPassword)
    check_password(call.broker.security.config, given.password)
    upsertions = await asyncio.to_thread(_upsertions, name, given.password)
    return await _altered(call, AlterUserScramCredentialsRequest(deletions=(), upsertions=upsertions))


async def delete_user(call: Call) -> Done:
    name = call.path("name")
    held = [one for one in (await list_users(call)).users if one.name == name]
    mechanisms = [one for one in ScramMechanism if any(_spelled(one) in user.mechanisms for user in held)]
    deletions = tuple(
        ScramCredentialDeletion(name=name, mechanism=one) for one in mechanisms or [ScramMechanism.SCRAM_SHA_512]
    )
    return await _altered(call, AlterUserScramCredentialsRequest(deletions=deletions, upsertions=()))


async def _altered(call: Call, request: AlterUserScramCredentialsRequest) -> Done:
    for result in (await call.ask(request)).results:
        raise_refusal(result.error_code, result.error_message)
    return Done()


def _upsertions(name: str, password: str) -> tuple[ScramCredentialUpsertion, ...]:
    made = []
    for mechanism, kind in _HASHES.items():
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(kind, password.encode("utf-8", "surrogatepass"), salt, _ITERATIONS)
        made.append(
            ScramCredentialUpsertion(
                name=name, mechanism=mechanism, iterations=_ITERATIONS, salt=salt, salted_password=salted
            )
        )
    return tuple(made)


def _spelled(mechanism: int) -> str:
    return ScramMechanism(mechanism).name.replace("_", "-")


_USER: Final = "/v1/users/{name}"

ENDPOINTS: Final = (
    Endpoint("GET", "/v1/users", list_users, "All users with passwords", answer=UserList),
    Endpoint("PUT", _USER, set_password, "Create a user, or change the password", body=NewPassword, answer=Done),
    Endpoint("DELETE", _USER, delete_user, "Delete a user", answer=Done),
)
