"""Delegation tokens: their rules, logging in with them, and who may see and change them."""

from __future__ import annotations

import base64
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

import ottla
from ottla.broker.security.delegation_tokens import (
    DelegationTokens,
    TokenExpired,
    TokenNotFound,
    TokenOwnerMismatch,
)
from ottla.cli.main import program
from ottla.client.admin.acls import Acl
from ottla.client.errors import AuthenticationFailed, BrokerError
from ottla.client.security import Security
from ottla.core.errors import ConfigError, ErrorCode
from ottla.core.security import AclOperation, ResourceType
from ottla.net.security_config import SecurityConfig

from .securing import PASSWORDS, Secured, secured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.client.admin.tokens import DelegationToken as Made
    from ottla.storage.catalog.entries import DelegationToken

ANN, BOB, EVE = "User:ann", "User:bob", "User:eve"
DAY_MS = 24 * 3600 * 1000


class Rules:
    def __init__(self) -> None:
        self.held: dict[str, DelegationToken] = {}
        self.tokens = DelegationTokens(SecurityConfig(delegation_token_secret="key"), lambda: self.held)

    def create(self, lifetime_ms: int = -1, now_ms: int = 0) -> DelegationToken:
        token = self.tokens.created(ANN, ANN, [BOB], lifetime_ms, now_ms)
        self.held = {**self.held, token.id: token}
        return token


def test_a_token_expires_after_a_day_and_lives_for_at_most_a_week() -> None:
    rules = Rules()
    token = rules.create()
    assert (token.issued_ms, token.expires_ms, token.max_ms) == (0, DAY_MS, 7 * DAY_MS)
    short = rules.create(lifetime_ms=1000)
    assert (short.expires_ms, short.max_ms) == (1000, 1000)
    assert rules.create(lifetime_ms=99 * DAY_MS).max_ms == 7 * DAY_MS


def test_owner_and_renewers_renew_a_token_up_to_its_maximum() -> None:
    rules = Rules()
    token = rules.create()
    secret = rules.tokens.hmac(token.id)
    assert rules.tokens.renewed(secret, BOB, -1, DAY_MS).expires_ms == 2 * DAY_MS
    assert rules.tokens.renewed(secret, ANN, 1000, 500).expires_ms == 1500
    old = rules.held[token.id] = replace(token, expires_ms=token.max_ms)
    assert rules.tokens.renewed(secret, ANN, -1, old.max_ms - 5).expires_ms == old.max_ms


def test_others_expired_tokens_and_unknown_secrets_are_refused() -> None:
    rules = Rules()
    secret = rules.tokens.hmac(rules.create().id)
    with pytest.raises(TokenOwnerMismatch):
        rules.tokens.renewed(secret, EVE, -1, 0)
    with pytest.raises(TokenOwnerMismatch):
        rules.tokens.expired(secret, EVE, -1, 0)
    with pytest.raises(TokenExpired):
        rules.tokens.renewed(secret, EVE, -1, DAY_MS + 1)
    with pytest.raises(TokenExpired):
        rules.tokens.expired(secret, ANN, 5, DAY_MS + 1)
    with pytest.raises(TokenNotFound):
        rules.tokens.renewed(b"other", ANN, -1, 0)


def test_a_token_is_deleted_at_once_or_expires_later() -> None:
    rules = Rules()
    secret = rules.tokens.hmac(rules.create().id)
    assert rules.tokens.expired(secret, ANN, -1, 0) is None
    later = rules.tokens.expired(secret, ANN, 5, 10)
    assert later is not None
    assert later.expires_ms == 15


def test_expired_tokens_cannot_log_in_and_are_found_to_be_deleted() -> None:
    rules = Rules()
    token = rules.create()
    assert rules.tokens.find(token.id, "SCRAM-SHA-256", DAY_MS) is not None
    assert rules.tokens.find(token.id, "SCRAM-SHA-256", DAY_MS + 1) is None
    assert rules.tokens.outdated(DAY_MS) == []
    assert rules.tokens.outdated(DAY_MS + 1) == [token.id]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Secured]:
    with secured(tmp_path, delegation_token_secret="key", acls=True, super_users=("User:admin",)) as broker:
        yield broker


def with_token(broker: Secured, token: Made, **changes: Any) -> ottla.Admin:
    login: dict[str, Any] = {
        "mechanism": "SCRAM-SHA-256",
        "username": token.id,
        "password": token.secret,
        "is_delegation_token": True,
        "tls": True,
        "ca_file": str(broker.authority.cert),
    }
    return ottla.Admin(broker.address("SASL_SSL"), security=Security(**login | changes))


def refused(call: Any, *arguments: Any, **named: Any) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        call(*arguments, **named)
    return ErrorCode(caught.value.code)


def test_a_token_logs_in_as_its_owner_and_not_with_a_wrong_secret_or_as_a_password(broker: Secured) -> None:
    with broker.admin("admin") as admin:
        admin.create_acls([Acl(ANN, AclOperation.CREATE, ResourceType.TOPIC, "of-ann")])
        token = admin.create_token(owner=ANN)
        assert (token.owner, token.requester) == (ANN, "User:admin")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        with with_token(broker, token, mechanism=mechanism) as as_ann:
            assert refused(as_ann.create_topic, "other") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with with_token(broker, token) as as_ann:
        as_ann.create_topic("of-ann")
        # A token cannot be used to get another one, or to prolong itself.
        assert refused(as_ann.create_token) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert refused(as_ann.renew_token, token.hmac) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert refused(as_ann.list_tokens) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    for wrong in ({"password": base64.b64encode(b"x" * 64).decode()}, {"is_delegation_token": False}):
        with pytest.raises(AuthenticationFailed), with_token(broker, token, **wrong) as as_ann:
            as_ann.list_topics()
    with (
        pytest.raises(AuthenticationFailed),
        with_token(broker, dataclasses.replace(token, id="ann"), password=PASSWORDS["ann"]) as ann,
    ):
        ann.list_topics()


def test_a_deleted_token_closes_its_connections_and_is_refused(broker: Secured) -> None:
    with broker.admin("ann") as ann:
        token = ann.create_token(renewers=[BOB])
        with with_token(broker, token, mechanism="SCRAM-SHA-512") as user:
            user.list_topics()
            with broker.admin("bob") as bob:
                bob.expire_token(token.hmac)
            with pytest.raises((AuthenticationFailed, BrokerError)):
                user.list_topics()
        assert refused(ann.renew_token, token.hmac) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_only_owner_renewers_and_those_with_acls_see_a_token(broker: Secured) -> None:
    with broker.admin("ann") as ann, broker.admin("bob") as bob, broker.admin("admin") as admin:
        first, second = ann.create_token(renewers=[BOB]), ann.create_token()
        assert {each.id for each in ann.list_tokens()} == {first.id, second.id}
        assert [each.hmac for each in bob.list_tokens()] == [first.hmac]
        assert ann.list_tokens(["User:carl"]) == []
        assert refused(bob.create_token, owner=ANN) == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert refused(ann.create_token, renewers=["Group:g"]) == ErrorCode.INVALID_PRINCIPAL_TYPE
        admin.create_acls([Acl(BOB, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, second.id)])
        assert {each.id for each in bob.list_tokens()} == {first.id, second.id}
        admin.create_acls([Acl(BOB, AclOperation.CREATE_TOKENS, ResourceType.USER, ANN)])
        third = bob.create_token(owner=ANN)
        assert refused(bob.renew_token, third.hmac) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert third.id in {each.id for each in bob.list_tokens()}  # it has requested it
        fourth = ann.create_token()
        assert fourth.id not in {each.id for each in bob.list_tokens()}
        admin.create_acls([Acl(BOB, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, ANN)])
        assert fourth.id in {each.id for each in bob.list_tokens([ANN])}
    changes = [line for line in broker.audit() if line["event"] == "change" and line["api"] == "CreateDelegationToken"]
    assert changes[0]["names"] == [first.id]
    assert all(first.secret not in str(line) for line in broker.audit())


def test_tokens_are_refused_if_not_configured_or_without_authentication(tmp_path: Path) -> None:
    with secured(tmp_path) as broker:
        with broker.admin("ann") as ann:
            assert refused(ann.create_token) == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
            assert refused(ann.list_tokens) == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        with ottla.Admin(broker.address("PLAINTEXT")) as anonymous:
            assert refused(anonymous.list_tokens) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with pytest.raises(ConfigError, match="is_delegation_token needs"):
        Security(mechanism="PLAIN", username="a", password="b", is_delegation_token=True)


def test_the_command_creates_lists_renews_and_expires_tokens(broker: Secured) -> None:
    common = ["-b", broker.address("SASL_SSL"), "--ca-file", str(broker.authority.cert)]
    common += ["--sasl", "scram-sha-512", "--user", "ann"]
    runner = CliRunner(env={"OTTLA_PASSWORD": PASSWORDS["ann"]})
    made = runner.invoke(program, ["token", "create", "--renewer", BOB, "--max-lifetime", "2d", *common])
    assert made.exit_code == 0, made.output
    told = dict(line.split(":", 1) for line in made.output.splitlines())
    token_id = told["id"].strip()
    assert told["owner"].strip() == ANN
    assert token_id in runner.invoke(program, ["token", "list", *common]).output
    assert "expires" in runner.invoke(program, ["token", "renew", token_id, "--for", "1h", *common]).output
    gone = runner.invoke(program, ["token", "expire", token_id, *common])
    assert gone.output == f"token {token_id} deleted\n"
    again = runner.invoke(program, ["token", "expire", token_id, *common])
    assert (again.exit_code, "no delegation token" in again.output) == (1, True)
