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


FEW_RIGHTS = {
    "": "few-seen",
    "topics": "few-seen",
    "topics/few-seen": "You may not see or use this: that needs READ on the topic few-seen.",
    "topics/few-seen/partitions": "First offset",
    "topics/few-seen/configs": "that needs DESCRIBE_CONFIGS on the topic few-seen",
    "groups": "No groups yet",
    "cluster": "You may not see them: that needs DESCRIBE on the cluster.",
    "connect": "bootstrap.servers",
}


def denials(guarded: Served) -> int:
    return sum(1 for line in guarded.broker.audit() if line["event"] == "denied")


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
    expect(row).to_contain_text("Allow READ topic reports")
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


def test_a_user_with_few_rights_sees_what_is_allowed_and_causes_no_denied_requests(page: Page, guarded: Served) -> None:
    with guarded.by("admin") as admin:
        for topic in ("few-seen", "few-hidden"):
            admin.post("/v1/topics", json={"name": topic}).raise_for_status()
        right = {"principal": "User:bob", "resource_type": "TOPIC", "resource_name": "few-seen"}
        admin.post("/v1/acls", json=right | {"operation": "DESCRIBE"}).raise_for_status()
    before = denials(guarded)
    log_in(page, "bob", PASSWORDS["bob"])
    main = page.locator("main")
    expect(main).to_contain_text("User:bob")
    expect(main).to_contain_text("You may not see them: that needs DESCRIBE on the cluster.")
    expect(main).not_to_contain_text("No user")
    page.clock.install()
    for place, content in FEW_RIGHTS.items():
        page.goto(f"{guarded.url}/#/{place}")
        expect(main).to_contain_text(content)
        expect(main.get_by_role("alert")).to_have_count(0)
        page.clock.run_for(12_000)  # several turns of every poll
    expect(page.locator(".broker")).not_to_contain_text("not")
    page.goto(f"{guarded.url}/#/topics")
    expect(main).to_contain_text("few-seen")
    expect(main).not_to_contain_text("few-hidden")
    assert denials(guarded) == before


def test_an_acl_is_shown_as_allow_or_deny_and_edited(page: Page, guarded: Served) -> None:
    acl = {"principal": "User:eve", "resource_type": "TOPIC", "resource_name": "edited", "operation": "READ"}
    with guarded.by("admin") as admin:
        admin.post("/v1/acls", json=acl | {"permission": "DENY"}).raise_for_status()
        log_in(page, "admin", PASSWORDS["admin"])
        acls = page.get_by_role("table", name="ACLs")
        expect(acls.get_by_role("columnheader", name="May", exact=True)).to_have_count(0)
        row = acls.get_by_role("row").filter(has_text="edited")
        expect(row.get_by_role("cell")).to_contain_text(["User:eve", "Deny", "READ", "TOPIC", "edited", "*"])
        row.get_by_role("button", name="Edit").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Permission").select_option("Allow")
        dialog.get_by_label("Host").fill("127.0.0.1")
        dialog.get_by_role("button", name="Save").click()
        expect(row.get_by_role("cell")).to_contain_text(["User:eve", "Allow", "READ", "TOPIC", "edited", "127.0.0.1"])
        left = admin.get("/v1/acls", params={"resource_name": "edited"}).json()["acls"]
        assert [(one["permission"], one["host"]) for one in left] == [("ALLOW", "127.0.0.1")]


SECURED: dict[str, tuple[str, ...]] = {
    "confluent-kafka": ('"security.protocol": "SASL_SSL"', '"sasl.mechanism": "SCRAM-SHA-512"', "**security"),
    "aiokafka": ('"sasl_mechanism": "SCRAM-SHA-512"', "create_ssl_context", "**security"),
    "kafka-python": ('"ssl_cafile": "ca.pem"', '"sasl_plain_password": "PASSWORD"', "**security"),
    "ottla.client": ("security=Security(tls=True", 'mechanism="SCRAM-SHA-512"'),
    "Java": ('"sasl.jaas.config"', "ScramLoginModule"),
    "kafkajs": ('sasl: { mechanism: "scram-sha-512"', "ssl: {"),
    "franz-go": ("scram.Auth{", "kgo.DialTLSConfig"),
    "Sarama": ("config.Net.SASL.Enable = true", "config.Net.TLS.Enable = true"),
    "kcat": ("-X sasl.mechanism=SCRAM-SHA-512", "-X ssl.ca.location=ca.pem"),
    "curl": ("-u 'USER:PASSWORD'",),
}


def test_the_connect_page_shows_the_required_security_settings(page: Page, guarded: Served) -> None:
    log_in(page, "ann", PASSWORDS["ann"])
    expect(page.get_by_role("heading", name="Access")).to_be_visible()
    with guarded.by("ann") as ann:
        broker = ann.get("/v1/broker").json()
    assert (broker["security_protocol"], broker["sasl_mechanisms"]) == ("PLAINTEXT", [])
    broker |= {"security_protocol": "SASL_SSL", "sasl_mechanisms": ["PLAIN", "SCRAM-SHA-512"]}
    page.route("**/v1/broker", lambda route: route.fulfill(json=broker))
    page.goto(f"{guarded.url}/#/connect")
    needed = page.locator(".snippet").first
    expect(needed).to_contain_text("security.protocol=SASL_SSL")
    expect(needed).to_contain_text("sasl.mechanism=SCRAM-SHA-512")
    for library, settings in SECURED.items():
        page.get_by_role("button", name=library, exact=True).click()
        for setting in settings:
            expect(page.locator(".snippet").nth(1)).to_contain_text(setting)
