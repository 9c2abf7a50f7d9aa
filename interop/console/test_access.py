"""A broker with authentication: login to the console, and management of users and ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.security.securing import PASSWORDS, secured
from tests.security.test_rest import Served, served

from interop.console.conftest import DESKTOP, PATIENCE_MS
from interop.console.watched_page import WatchedPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("guarded")
    with secured(folder, acls=True, super_users=("User:admin",)) as broker, served(broker) as http:
        yield http


@pytest.fixture
def page(browser: Browser, guarded: Served) -> Iterator[Page]:
    context = browser.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    watched = WatchedPage(context.new_page(), guarded.url)
    watched.page.goto(f"{guarded.url}/#/access")
    yield watched.page
    context.close()
    assert watched.complaints == []


def log_in(page: Page, user: str, password: str) -> None:
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def test_a_wrong_password_is_reported_in_the_form(page: Page) -> None:
    log_in(page, "admin", "wrong")
    expect(page.get_by_text("The user or the password is wrong.")).to_be_visible()


def test_a_logged_in_user_adds_and_deletes_an_acl(page: Page) -> None:
    log_in(page, "admin", PASSWORDS["admin"])
    page.get_by_role("button", name="Add ACL").click()
    page.get_by_label("Principal").fill("User:ann")
    page.get_by_label("Name", exact=True).fill("from-the-console")
    page.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("row").filter(has_text="from-the-console")
    expect(row).to_contain_text("User:ann")
    page.reload()
    row.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


def test_a_role_is_shown_with_its_members_and_rules_and_changed(page: Page) -> None:
    log_in(page, "admin", PASSWORDS["admin"])
    page.get_by_role("button", name="Add ACL").click()
    page.get_by_label("Principal").fill("Role:analyst")
    page.get_by_label("Name", exact=True).fill("reports")
    page.get_by_role("button", name="Add", exact=True).click()
    roles = page.get_by_role("table", name="Roles")
    row = roles.get_by_role("row").filter(has_text="analyst")
    expect(row).to_contain_text("READ topic reports")
    row.get_by_role("button", name="Add member").click()
    page.get_by_role("textbox", name="Member").fill("Group:sales")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(row).to_contain_text("Group:sales")
    row.get_by_role("button", name="Remove Group:sales").click()
    expect(row).not_to_contain_text("Group:sales")
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("analyst")
    page.get_by_role("button", name="Delete role").click()
    expect(row).to_have_count(0)


def test_after_logout_a_login_is_required(page: Page) -> None:
    log_in(page, "admin", PASSWORDS["admin"])
    expect(page.get_by_role("heading", name="Access")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Password")).to_be_visible()


def test_a_denied_command_says_so(page: Page) -> None:
    log_in(page, "ann", PASSWORDS["ann"])
    expect(page.get_by_text("CLUSTER_AUTHORIZATION_FAILED").first).to_be_visible()


def test_the_connect_page_shows_the_required_security_settings(page: Page, guarded: Served) -> None:
    values = {"listeners": "SASL_SSL://127.0.0.1:9093", "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN"}
    configs = [{"name": name, "value": value} for name, value in values.items()]
    page.route("**/v1/configs", lambda route: route.fulfill(json={"configs": configs}))
    log_in(page, "admin", PASSWORDS["admin"])
    expect(page.get_by_role("heading", name="Access")).to_be_visible()
    page.goto(f"{guarded.url}/#/connect")
    needed = page.locator(".snippet").first
    expect(needed).to_contain_text("security.protocol=SASL_SSL")
    expect(needed).to_contain_text("sasl.mechanism=SCRAM-SHA-512")
