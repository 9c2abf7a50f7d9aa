"""SCRAM users and client quotas."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from ottla.client.admin.requests import AdminRequests
from ottla.client.errors import raise_for
from ottla.core.security import ScramMechanism
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.wire.messages.describe_user_scram_credentials import CredentialInfo

DEFAULT_ITERATIONS: Final = 4096
_SALT_BYTES: Final = 24
_HASHES: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


class ScramInfo(NamedTuple):
    mechanism: ScramMechanism
    iterations: int
    expires_ms: int | None = None
    """When it expires, in milliseconds since 1970; None for never. Ottla's brokers only."""


class QuotaEntry(NamedTuple):
    entity: dict[str, str | None]
    """The names by user, client-id or ip; None for the default entity."""
    limits: dict[str, float]


class UserAdmin(AdminRequests):
    async def list_users(self) -> dict[str, list[ScramInfo]]:
        """The SCRAM users and their mechanisms."""
        response = await self._router.ask(DescribeUserScramCredentialsRequest(users=None))
        raise_for(response.error_code, "cannot list users", response.error_message)
        found: dict[str, list[ScramInfo]] = {}
        for each in response.results:
            raise_for(each.error_code, f"user {each.user!r}", each.error_message)
            found[each.user] = [_info(info) for info in each.credential_infos]
        return dict(sorted(found.items()))

    async def set_password(
        self,
        user: str,
        password: str,
        mechanisms: Iterable[ScramMechanism] = (ScramMechanism.SCRAM_SHA_512, ScramMechanism.SCRAM_SHA_256),
        iterations: int = DEFAULT_ITERATIONS,
        *,
        expires_ms: int | None = None,
    ) -> None:
        """Set a user's password; creates the user if necessary. The password does not leave this machine.

        `expires_ms` is its expiry in milliseconds since 1970; 0 for never, None for the broker's default. Apache Kafka
        ignores it.
        """
        upsertions = [
            replace(
                await asyncio.to_thread(_upsertion, user, mechanism, password, iterations),
                expires_timestamp_ms=-1 if expires_ms is None else expires_ms,
            )
            for mechanism in mechanisms
        ]
        await self._alter_user(user, AlterUserScramCredentialsRequest(deletions=(), upsertions=tuple(upsertions)))

    async def set_password_expiry(self, user: str, expires_ms: int) -> None:
        """Change when a user's password expires: milliseconds since 1970, or 0 for never. Apache Kafka rejects this."""
        mechanisms = [info.mechanism for info in (await self.list_users()).get(user, ())] or list(ScramMechanism)[:1]
        upsertions = tuple(
            ScramCredentialUpsertion(
                name=user, mechanism=each, iterations=0, salt=b"", salted_password=b"", expires_timestamp_ms=expires_ms
            )
            for each in mechanisms
        )
        await self._alter_user(user, AlterUserScramCredentialsRequest(deletions=(), upsertions=upsertions))

    async def delete_user(self, user: str, mechanisms: Iterable[ScramMechanism] | None = None) -> None:
        """Delete these SCRAM credentials of a user, or all of them."""
        gone = mechanisms
        if gone is None:
            gone = [info.mechanism for info in (await self.list_users()).get(user, ())] or list(ScramMechanism)[:1]
        deletions = tuple(ScramCredentialDeletion(name=user, mechanism=mechanism) for mechanism in gone)
        await self._alter_user(user, AlterUserScramCredentialsRequest(deletions=deletions, upsertions=()))

    async def _alter_user(self, user: str, request: AlterUserScramCredentialsRequest) -> None:
        response = await self._ask_controller(request, lambda answer: (each.error_code for each in answer.results))
        for each in response.results:
            raise_for(each.error_code, f"cannot change user {user!r}", each.error_message)

    async def list_quotas(self) -> list[QuotaEntry]:
        response = await self._router.ask(DescribeClientQuotasRequest(components=(), strict=False))
        raise_for(response.error_code, "cannot list quotas", response.error_message)
        return [
            QuotaEntry(
                {part.entity_type: part.entity_name for part in entry.entity},
                {value.key: value.value for value in entry.values},
            )
            for entry in response.entries or ()
        ]

    async def alter_quota(self, entity: Mapping[str, str | None], limits: Mapping[str, float | None]) -> None:
        """Set quotas, or remove those that are None: `alter_quota({"user": "ann"}, {"producer_byte_rate": 1e6})`."""
        entry = EntryData(
            entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()),
            ops=tuple(
                OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                for key, value in limits.items()
            ),
        )
        request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
        response = await self._ask_controller(request, lambda answer: (each.error_code for each in answer.entries))
        [result] = response.entries
        raise_for(result.error_code, "cannot alter the quota", result.error_message)


def _info(info: CredentialInfo) -> ScramInfo:
    expires_ms = info.expires_timestamp_ms
    return ScramInfo(ScramMechanism(info.mechanism), info.iterations, expires_ms if expires_ms >= 0 else None)


def _upsertion(user: str, mechanism: ScramMechanism, password: str, iterations: int) -> ScramCredentialUpsertion:
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )
