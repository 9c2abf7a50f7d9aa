"""Passwords that expire: new logins, open connections, sessions; and rules for new ones."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from tests.broker.raw_client import HungUpError, RawClient

import ottla
from ottla.broker.security.passwords import character_kinds, check_password, expiry
from ottla.client.admin.acls import Acl
from ottla.core.errors import ErrorCode, OttlaError, PolicyViolation
from ottla.core.security import AclOperation, ResourceType
from ottla.net.security_config import SecurityConfig
from ottla.wire.messages.metadata import MetadataRequest

from .securing import PASSWORDS, Secured, secured
from .test_cli import refused, run
from .test_gate import log_in
from .test_rest import Served, served
from .test_revocation import PATIENCE_S, fetching, partition, produce, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOUR_MS = 3_600_000
METADATA = MetadataRequest(topics=())


def now_ms() -> int:
    return round(time.time() * 1000)


@pytest.fixture(autouse=True)
def _prepared(request: pytest.FixtureRequest) -> None:
    if "guarded" in request.fixturenames or "rest" in request.fixturenames:
        guarded: Secured = request.getfixturevalue("guarded")
        with guarded.admin() as admin:
            admin.set_password("ann", PASSWORDS["ann"])


@pytest.fixture(scope="module")
def rest(guarded: Secured) -> Iterator[Served]:
    with served(guarded) as http:
        yield http


@pytest.fixture
def ann(guarded: Secured) -> Iterator[RawClient]:
    with RawClient(guarded.address("SASL_PLAINTEXT"), timeout_s=PATIENCE_S) as client:
        assert log_in(client, "ann").error_code == ErrorCode.NONE
        yield client


def expire(guarded: Secured, user: str = "ann") -> None:
    with guarded.admin() as admin:
        admin.set_password_expiry(user, now_ms() - 1)


def test_a_login_with_an_expired_password_is_refused_with_the_reason(guarded: Secured) -> None:
    expire(guarded)
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        answer = log_in(client, "ann")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message is not None
    assert answer.error_message.startswith("the password of user 'ann' expired at 20")
    assert "expired at" in guarded.audit()[-1]["reason"]


def test_a_wrong_password_does_not_reveal_its_expiry(guarded: Secured) -> None:
    expire(guarded)
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        answer = log_in(client, "ann", "wrong")
    assert answer.error_message == "Authentication failed: invalid credentials or mechanism"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_our_client_reports_an_expired_password(guarded: Secured, mechanism: str) -> None:
    expire(guarded)
    security = guarded.login("ann", mechanism)
    why = "password of user 'ann' expired at"
    with pytest.raises(OttlaError, match=why), ottla.Admin(guarded.address("SASL_SSL"), security=security) as admin:
        admin.list_topics()


def test_a_login_lasts_no_longer_than_its_password(guarded: Secured) -> None:
    with guarded.admin() as admin:
        admin.set_password_expiry("ann", now_ms() + HOUR_MS)
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        assert HOUR_MS - 60_000 < log_in(client, "ann").session_lifetime_ms <= HOUR_MS


def test_open_connections_end_when_the_password_is_expired(guarded: Secured, ann: RawClient) -> None:
    assert ann.ask(METADATA).brokers
    expire(guarded)
    ann.send(METADATA)
    with pytest.raises((HungUpError, ConnectionError)):
        ann.receive_frame()


def test_a_waiting_fetch_gets_nothing_after_the_password_expired(guarded: Secured, ann: RawClient) -> None:
    with guarded.admin() as admin:
        admin.create_topic("t")
        admin.create_acls([Acl("User:ann", AclOperation.ALL, ResourceType.TOPIC, "t")])
        ann.send(fetching(), version=12)
        until(lambda: partition(guarded).waits)
        expire(guarded)
        produce(guarded)
        with pytest.raises((HungUpError, ConnectionError)):
            ann.receive_frame()
        admin.delete_topics(["t"])


def test_a_password_that_expires_later_or_never_logs_in_again(guarded: Secured) -> None:
    expire(guarded)
    with guarded.admin() as admin:
        admin.set_password_expiry("ann", 0)
    with RawClient(guarded.address("SASL_PLAINTEXT")) as client:
        assert log_in(client, "ann").error_code == ErrorCode.NONE


def test_basic_logins_and_sessions_end_with_the_password(rest: Served, guarded: Secured) -> None:
    with rest.client() as browser, rest.by("ann") as script:
        given = {"user": "ann", "password": PASSWORDS["ann"]}
        assert browser.post("/v1/session", json=given).status_code == 201
        assert browser.get("/v1/topics").status_code == 200
        assert script.get("/v1/topics").status_code == 200
        expire(guarded)
        assert browser.get("/v1/topics").status_code == 401
        answer = script.get("/v1/topics")
        assert (answer.status_code, "expired at" in answer.json()["detail"]) == (401, True)
        again = browser.post("/v1/session", json=given)
        assert (again.status_code, "expired at" in again.json()["detail"]) == (401, True)


def test_rest_sets_and_lists_expiries(rest: Served) -> None:
    with rest.by("admin") as admin:
        given = {"password": "a new password", "valid_ms": HOUR_MS}
        assert admin.put("/v1/users/carl", json=given).status_code == 200
        [carl] = [one for one in admin.get("/v1/users").json()["users"] if one["name"] == "carl"]
        assert abs(int(carl["expires_ms"]) - now_ms() - HOUR_MS) < 60_000
        assert admin.put("/v1/users/carl/expiry", json={"valid_ms": None}).status_code == 200
        [carl] = [one for one in admin.get("/v1/users").json()["users"] if one["name"] == "carl"]
        assert carl["expires_ms"] is None
        assert admin.put("/v1/users/nobody/expiry", json={"valid_ms": 0}).status_code == 404
        admin.delete("/v1/users/carl")


def test_the_command_line_sets_and_shows_expiries(guarded: Secured) -> None:
    run(guarded, "user", "add", "eve", "--password-file", "-", "--expires-in", "90d", given="a secret\n")
    [eve] = [one for one in json.loads(run(guarded, "user", "list", "-o", "json")) if one["user"] == "eve"]
    assert eve["expires"] == time.strftime("%Y-%m-%d", time.gmtime(time.time() + 90 * 86400)) + eve["expires"][10:]
    assert run(guarded, "user", "expire", "eve", "--never") == "password of eve: does not expire\n"
    assert run(guarded, "user", "expire", "eve").startswith("password of eve: expires 20")
    assert "there is no user 'nobody'" in refused(guarded, "user", "expire", "nobody", user="admin")
    run(guarded, "user", "delete", "eve", "--yes")


def test_passwords_get_the_configured_age(tmp_path: Path) -> None:
    with secured(tmp_path, password_max_age_ms=24 * HOUR_MS) as broker, broker.admin() as admin:
        for infos in admin.list_users().values():
            assert all(one.expires_ms is not None and one.expires_ms <= now_ms() + 24 * HOUR_MS for one in infos)
        with pytest.raises(OttlaError, match=r"longer than security.password_max_age_ms"):
            admin.set_password_expiry("ann", 0)


def test_an_expired_admin_gets_in_again_through_the_data_folder(tmp_path: Path) -> None:
    with secured(tmp_path) as broker:
        expire(broker, "admin")
        with pytest.raises(OttlaError, match="expired at"), broker.admin() as admin:
            admin.list_users()
    with secured(tmp_path) as broker, broker.admin() as admin:  # adds its users offline
        assert admin.list_users()["admin"][0].expires_ms is None


def test_the_configured_maximum_age_limits_expiries() -> None:
    config = SecurityConfig(password_max_age_ms=1000)
    assert expiry(config, -1, now_ms=5000) == 6000
    assert expiry(config, 5500, now_ms=5000) == 5500
    for wanted_ms in (0, 6001):
        with pytest.raises(PolicyViolation):
            expiry(config, wanted_ms, now_ms=5000)
    assert expiry(SecurityConfig(), -1, now_ms=5000) is None
    assert expiry(SecurityConfig(), 0, now_ms=5000) is None


def test_rules_for_passwords(tmp_path: Path) -> None:
    denied = tmp_path / "denied.txt"
    denied.write_text("Passw0rd!\nletmein\n")
    config = SecurityConfig(password_min_character_kinds=3, password_denied_file=denied)
    check_password(config, "ann", "Correct horse")
    for password, why in (
        ("correcthorse", r"has 1 of the kinds .* is 3"),
        ("Ann's Horse", "contains the name of the user"),
        ("PASSW0RD!", "listed in security.password_denied_file"),
    ):
        with pytest.raises(PolicyViolation, match=why):
            check_password(config, "ann", password)
    check_password(SecurityConfig(), "ann", "ann")


def test_kinds_of_characters() -> None:
    assert [character_kinds(text) for text in ("", "abc", "aB", "aB3", "aB3 ", "ß", "漢字")] == [0, 1, 2, 3, 4, 1, 1]
