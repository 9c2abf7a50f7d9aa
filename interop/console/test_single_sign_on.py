"""Single sign-on with Keycloak: the browser's login, PKCE, groups, renewal, and logouts that the provider sends."""

from __future__ import annotations

import os
import re
import socket
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import expect
from tests.security.securing import Secured, secured
from tests.security.test_rest import Served, served

from interop.console.conftest import DESKTOP, PATIENCE_MS
from interop.kafka_artifacts import ToolMissingError
from interop.keycloak import CLIENT_ID, CLIENT_SECRET, PASSWORDS, Keycloak, keycloak
from ottla.broker.security.oidc.flow import authorization_url, new_attempt
from ottla.broker.security.oidc.provider import Provider
from ottla.client.admin.acls import Acl
from ottla.core.security import AclOperation, LoginFailed, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

PATIENCE_S = 20

pytestmark = [pytest.mark.timeout(1200), pytest.mark.long]
"""The first test waits until Keycloak is fetched, built and started."""


class Setup(NamedTuple):
    broker: Secured
    http: Served
    provider: Keycloak

    def expire_grants(self) -> None:
        """Expire the provider's tokens."""
        starting = self.http._http._starting  # noqa: SLF001 - no door leads there
        assert starting is not None
        login = starting.result()._http_state.login  # noqa: SLF001
        assert login is not None
        for session in login.sessions._by_token.values():  # noqa: SLF001
            session.renew_from_s = 0.0


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    folder = tmp_path_factory.mktemp("single-sign-on")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    console = f"http://127.0.0.1:{port}"
    try:
        with keycloak(folder, console) as provider:
            settings = {
                "oidc_issuer": provider.issuer,
                "oidc_client_id": CLIENT_ID,
                "oidc_client_secret": CLIENT_SECRET,
                "oidc_public_url": console,
                "oidc_principal_claim": "preferred_username",
                "oidc_groups_claim": "groups",
            }
            with (
                secured(folder, acls=True, super_users=("User:admin",), **settings) as broker,
                served(broker, port=port) as http,
            ):
                with broker.admin() as admin:
                    admin.create_topic("sales-orders")
                    member = Acl("Group:sales", AclOperation.ALL, ResourceType.USER, "Role:seller")
                    right = Acl("Role:seller", AclOperation.READ, ResourceType.TOPIC, "sales-orders")
                    assert set(admin.create_acls([member, right]).values()) == {None}
                yield Setup(broker, http, provider)
    except ToolMissingError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture
def page(browser: Browser, setup: Setup) -> Iterator[Page]:
    context = browser.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{setup.http.url}/#/topics")
    yield page
    context.close()


def log_in(page: Page, user: str) -> None:
    page.get_by_role("link", name="Log in with single sign-on").click()
    page.locator("#username").fill(user)
    page.locator("#password").fill(PASSWORDS[user])
    page.locator("#kc-login").click()


def session_of(page: Page, setup: Setup) -> httpx.Client:
    cookies = {str(one.get("name")): str(one.get("value")) for one in page.context.cookies(setup.http.url)}
    return httpx.Client(base_url=setup.http.url, cookies=cookies, timeout=30)


def until_ended(client: httpx.Client) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while client.get("/v1/topics").status_code != 401:
        assert time.monotonic() < deadline


def test_a_browser_logs_in_and_the_groups_of_the_provider_are_in_roles(page: Page, setup: Setup) -> None:
    log_in(page, "ann")
    expect(page.get_by_role("link", name="sales-orders")).to_be_visible(timeout=PATIENCE_MS)
    with session_of(page, setup) as client:
        assert client.get("/v1/session").json()["principal"] == "User:ann"
        assert [one["name"] for one in client.get("/v1/topics").json()["topics"]] == ["sales-orders"]
    logins = [line for line in setup.broker.audit() if line["event"] == "login" and "mechanism" in line]
    assert ("User:ann", "oidc") in [(line["principal"], line["mechanism"]) for line in logins]


def test_a_user_without_the_group_sees_nothing(page: Page, setup: Setup) -> None:
    log_in(page, "bob")
    expect(page.get_by_role("button", name="Log out")).to_be_visible(timeout=PATIENCE_MS)
    with session_of(page, setup) as client:
        assert client.get("/v1/topics").json()["topics"] == []


def test_a_logout_that_the_provider_sends_ends_the_session(page: Page, setup: Setup) -> None:
    log_in(page, "ann")
    expect(page.get_by_role("link", name="sales-orders")).to_be_visible(timeout=PATIENCE_MS)
    with session_of(page, setup) as client:
        assert client.get("/v1/topics").status_code == 200
        setup.provider.admin("POST", f"/users/{setup.provider.user_id('ann')}/logout")
        until_ended(client)


def test_an_expired_login_is_renewed_until_the_provider_refuses(page: Page, setup: Setup) -> None:
    log_in(page, "ann")
    expect(page.get_by_role("link", name="sales-orders")).to_be_visible(timeout=PATIENCE_MS)
    user_id = setup.provider.user_id("ann")
    with session_of(page, setup) as client:
        setup.expire_grants()
        assert client.get("/v1/topics").status_code == 200
        setup.provider.admin("PUT", f"/users/{user_id}", {"enabled": False})
        try:
            setup.expire_grants()
            until_ended(client)
        finally:
            setup.provider.admin("PUT", f"/users/{user_id}", {"enabled": True})


def test_logging_out_in_the_console_ends_the_session_at_the_provider(page: Page, setup: Setup) -> None:
    log_in(page, "ann")
    expect(page.get_by_role("link", name="sales-orders")).to_be_visible(timeout=PATIENCE_MS)
    sessions = f"/users/{setup.provider.user_id('ann')}/sessions"
    before = len(setup.provider.admin("GET", sessions))
    with session_of(page, setup) as client:
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("link", name="Log in with single sign-on")).to_be_visible(timeout=PATIENCE_MS)
        assert client.get("/v1/topics").status_code == 401
    deadline = time.monotonic() + PATIENCE_S
    while (
        len(setup.provider.admin("GET", sessions)) != before - 1
    ):  # the login form may appear before the browser leaves
        assert time.monotonic() < deadline
    expect(page.get_by_role("link", name="Log in with single sign-on")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("link", name="Log in with single sign-on").click()
    expect(page.locator("#password")).to_be_visible(timeout=PATIENCE_MS)  # it asks for the password again


def test_a_code_is_worthless_without_its_verifier(setup: Setup) -> None:
    config = setup.broker.embedded.broker.settings.security
    provider = Provider(config)
    attempt = new_attempt(time.monotonic())
    with pytest.raises(LoginFailed, match="400"):
        provider.redeem(code_for(authorization_url(provider.metadata(), config, attempt)), new_attempt(0.0))
    granted = provider.redeem(code_for(authorization_url(provider.metadata(), config, attempt)), attempt)
    assert (granted.user, granted.groups) == ("ann", ("Group:sales",))
    without = re.sub(
        r"&code_challenge=[^&]*|&code_challenge_method=[^&]*",
        "",
        authorization_url(provider.metadata(), config, attempt),
    )
    refused = httpx.get(without)
    assert parse_qs(urlsplit(refused.headers["location"]).query)["error"] == ["invalid_request"]


def code_for(address: str) -> str:
    """The callback parameters for ann's browser."""
    with httpx.Client(timeout=60) as browser:
        found = re.search(r'action="([^"]+)"', browser.get(address).raise_for_status().text)
        assert found is not None
        # They are Secure, which browsers send to this machine over http, too; httpx does not.
        cookies = "; ".join(f"{one.name}={one.value}" for one in browser.cookies.jar)
        form = {"username": "ann", "password": PASSWORDS["ann"]}
        answer = browser.post(found[1].replace("&amp;", "&"), data=form, headers={"cookie": cookies})
        assert answer.status_code == 302, answer.text
        return parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]
