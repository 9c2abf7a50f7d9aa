"""Logging in with a browser through an OpenID Connect provider that runs beside the broker."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import oidc_provider_mock
import pytest

from ottla.broker.security.oidc.flow import Ended
from ottla.client.admin.acls import Acl
from ottla.core.security import AclOperation, ResourceType

from .securing import Secured, secured
from .test_rest import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PUBLIC_URL = "http://console.example"
USERS = (
    oidc_provider_mock.User(sub="17", claims={"preferred_username": "ann", "groups": ["sales", "staff"]}),
    oidc_provider_mock.User(sub="18", claims={"preferred_username": "bob", "groups": []}),
)


class Setup:
    def __init__(self, broker: Secured, http: Served, provider: str) -> None:
        self.broker = broker
        self.http = http
        self.provider = provider

    def expire_grants(self) -> None:
        """Expire the provider's tokens."""
        starting = self.http._http._starting
        assert starting is not None
        login = starting.result()._http_state.login
        assert login is not None
        for session in login.sessions._by_token.values():
            session.renew_from_s = 0.0

    def browser(self) -> httpx.Client:
        return self.http.client()

    def begin(self, browser: httpx.Client) -> str:
        """The address that the provider sends the browser of user 17 back to."""
        sent = browser.get("/v1/session/oidc")
        assert sent.status_code == 302
        return self.authorize(sent.headers["location"])

    def authorize(self, address: str, sub: str = "17") -> str:
        back = httpx.post(address, data={"sub": sub})
        assert back.status_code == 302, back.text
        return back.headers["location"]

    def log_in(self, browser: httpx.Client, sub: str = "17") -> None:
        back = self.authorize(browser.get("/v1/session/oidc").headers["location"], sub)
        done = browser.get(back.removeprefix(PUBLIC_URL))
        assert (done.status_code, done.headers.get("location")) == (303, "/"), done.text


@contextmanager
def running(folder: Path) -> Iterator[Setup]:
    with oidc_provider_mock.run_server_in_thread(require_nonce=True, user_claims=USERS) as server:
        issuer = f"http://localhost:{server.server_port}"
        settings = {
            "oidc_issuer": issuer,
            "oidc_client_id": "ottla",
            "oidc_client_secret": "a secret",
            "oidc_public_url": PUBLIC_URL,
            "oidc_principal_claim": "preferred_username",
            "oidc_groups_claim": "groups",
        }
        with secured(folder, acls=True, super_users=("User:admin",), **settings) as broker, served(broker) as http:
            yield Setup(broker, http, issuer)


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    with running(tmp_path_factory.mktemp("oidc")) as setup:
        yield setup


def test_a_browser_that_returns_from_the_provider_is_logged_in(setup: Setup) -> None:
    with setup.browser() as browser:
        before = browser.get("/v1/session").json()
        assert (before["needs_login"], before["login_url"]) == (True, "/v1/session/oidc")
        setup.log_in(browser)
        assert browser.get("/v1/session").json()["principal"] == "User:ann"


def test_a_login_through_the_provider_is_audited(setup: Setup) -> None:
    with setup.browser() as browser:
        setup.log_in(browser)
    logins = [line for line in setup.broker.audit() if line["event"] == "login" and line["mechanism"] == "oidc"]
    assert [line["principal"] for line in logins][-1:] == ["User:ann"]


def test_groups_of_the_id_token_have_rights_through_roles(setup: Setup) -> None:
    with setup.broker.admin() as admin:
        admin.create_topic("offers", partitions=1)
        admin.create_acls(
            [
                Acl("Role:reader", AclOperation.READ, ResourceType.TOPIC, "offers"),
                Acl("Group:sales", AclOperation.ALL, ResourceType.USER, "Role:reader"),
            ]
        )
    with setup.browser() as ann, setup.browser() as bob:
        setup.log_in(ann)
        setup.log_in(bob, sub="18")
        assert ann.get("/v1/topics/offers").status_code == 200
        assert bob.get("/v1/topics/offers").status_code != 200


def test_a_callback_is_valid_once_and_only_for_its_browser(setup: Setup) -> None:
    with setup.browser() as browser, setup.browser() as another:
        back = setup.begin(browser).removeprefix(PUBLIC_URL)
        assert another.get(back).status_code == 401
        assert browser.get(back).status_code == 401  # the attempt is used up
        assert browser.get("/v1/session").json()["needs_login"]


@pytest.mark.parametrize("query", ["", "?code=x&state=y", "?error=access_denied&state=y"])
def test_an_unsolicited_callback_is_refused(setup: Setup, query: str) -> None:
    with setup.browser() as browser:
        refused = browser.get(f"/v1/session/oidc/callback{query}")
        assert refused.status_code == 401
        assert "set-cookie" not in refused.headers


def test_logging_out_ends_the_session_and_names_the_providers_page(setup: Setup) -> None:
    with setup.browser() as browser:
        setup.log_in(browser)
        cookie = {"cookie": f"ottla_session={browser.cookies['ottla_session']}"}
        ended = browser.delete("/v1/session").json()
        assert ended["logout_url"].startswith(f"{setup.provider}/oauth2/end_session?")
        with setup.browser() as thief:
            assert thief.get("/v1/topics", headers=cookie).status_code == 401


def test_the_provider_ends_the_sessions_of_a_user(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    oidc = setup.broker.embedded.broker.security.oidc
    assert oidc is not None
    # Signed as ID tokens are, which other tests check; this provider sends none itself.
    monkeypatch.setattr(oidc._provider, "ended", lambda token: Ended("17", None) if token == "good" else None)  # noqa: S105
    with setup.browser() as ann, setup.browser() as bob:
        setup.log_in(ann)
        setup.log_in(bob, sub="18")
        sent = httpx.post(f"{setup.http.url}/v1/session/oidc/logout", data={"logout_token": "good"})
        assert sent.status_code == 200
        assert ann.get("/v1/session").json()["needs_login"]
        assert not bob.get("/v1/session").json()["needs_login"]


@pytest.mark.parametrize("token", ["", "x", "eyJhbGciOiJub25lIn0.e30."])
def test_a_forged_logout_token_is_refused(setup: Setup, token: str) -> None:
    sent = httpx.post(f"{setup.http.url}/v1/session/oidc/logout", data={"logout_token": token})
    assert sent.status_code == 400


def test_a_session_is_renewed_with_the_provider_and_ends_when_refused(setup: Setup) -> None:
    with setup.browser() as browser:
        setup.log_in(browser)
        setup.expire_grants()
        assert browser.get("/v1/session").json()["principal"] == "User:ann"
        httpx.post(f"{setup.provider}/users/17/revoke-tokens")
        assert browser.get("/v1/session").json()["principal"] == "User:ann"  # asked again when the grant expires
        setup.expire_grants()
        assert browser.get("/v1/session").json()["needs_login"]
        assert browser.get("/v1/topics").status_code == 401


def test_an_unreachable_provider_is_a_clear_error(tmp_path: Path) -> None:
    settings = {"oidc_issuer": "http://127.0.0.1:9", "oidc_client_id": "ottla", "oidc_public_url": PUBLIC_URL}
    with secured(tmp_path, **settings) as broker, served(broker) as http, http.client() as browser:
        refused = browser.get("/v1/session/oidc")
        assert refused.status_code == 502
        assert "does not respond" in refused.json()["detail"]


def test_without_a_provider_there_is_no_login(broker: Secured) -> None:
    with served(broker) as http, http.client() as browser:
        assert browser.get("/v1/session").json()["login_url"] is None
        assert browser.get("/v1/session/oidc").status_code == 404
