"""Delegation tokens: short-lived secrets that log in as their owner (KIP-48)."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.client.admin.requests import AdminRequests
from ottla.client.errors import raise_for
from ottla.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """Log in with `Security(mechanism=…, username=token.id, password=token.secret, is_delegation_token=True)`."""

    id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    @property
    def secret(self) -> str:
        return base64.b64encode(self.hmac).decode()


class TokenAdmin(AdminRequests):
    async def create_token(
        self, *, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int = -1
    ) -> DelegationToken:
        """Create a token for this user, or for another owner if ACLs allow it; -1 for the broker's maximum lifetime."""
        renewers = tuple(renewers)
        kind, name = _parts(owner) if owner else ("", "")
        request = CreateDelegationTokenRequest(
            owner_principal_type=kind,
            owner_principal_name=name,
            renewers=tuple(
                CreatableRenewers(principal_type=_parts(each)[0], principal_name=_parts(each)[1]) for each in renewers
            ),
            max_lifetime_ms=max_lifetime_ms,
        )
        answer = await self._router.ask(request)
        raise_for(answer.error_code, "cannot create a delegation token", None)
        owner = f"{answer.principal_type}:{answer.principal_name}"
        requester = f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"
        times = answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms
        return DelegationToken(answer.token_id, answer.hmac, owner, requester, renewers, *times)

    async def list_tokens(self, owners: Iterable[str] | None = None) -> list[DelegationToken]:
        """The tokens that this user owns, may renew or may describe; of these owners, or of all."""
        asked = None
        if owners is not None:
            pairs = map(_parts, owners)
            asked = tuple(
                DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in pairs
            )
        answer = await self._router.ask(DescribeDelegationTokenRequest(owners=asked))
        raise_for(answer.error_code, "cannot list delegation tokens", None)
        return [
            DelegationToken(
                each.token_id,
                each.hmac,
                f"{each.principal_type}:{each.principal_name}",
                f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
                tuple(f"{one.principal_type}:{one.principal_name}" for one in each.renewers),
                each.issue_timestamp,
                each.expiry_timestamp,
                each.max_timestamp,
            )
            for each in answer.tokens
        ]

    async def renew_token(self, hmac: bytes, period_ms: int = -1) -> int:
        """Renew a token by this period, -1 for the broker's default; returns its new expiry."""
        answer = await self._router.ask(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms))
        raise_for(answer.error_code, "cannot renew the delegation token", None)
        return answer.expiry_timestamp_ms

    async def expire_token(self, hmac: bytes, period_ms: int = -1) -> int:
        """Let a token expire after this time; -1 for at once."""
        answer = await self._router.ask(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms))
        raise_for(answer.error_code, "cannot expire the delegation token", None)
        return answer.expiry_timestamp_ms


def _parts(principal: str) -> tuple[str, str]:
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"a principal must be such as User:ann, got {principal!r}")
    return kind, name
