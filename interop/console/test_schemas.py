"""Schemas in the browser: subjects, versions side by side, settings, registering, decoded messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from playwright.sync_api import expect
from tests.security.securing import PASSWORDS, secured
from tests.security.test_rest import served

from interop.console.conftest import DESKTOP, PATIENCE_MS
from interop.console.test_access import log_in
from interop.console.watched_page import WatchedPage
from ottla.client.admin.acls import Acl
from ottla.core.security import AclOperation, ResourceType
from ottla.schema import AvroSerializer, JsonSchemaSerializer, ProtobufSerializer

if TYPE_CHECKING:
    from pathlib import Path

    import httpx
    from playwright.sync_api import Browser

    from interop.ottla_server import OttlaServer


def avro(name: str, **fields: object) -> str:
    listed = [{"name": field, "type": kind} for field, kind in fields.items()]
    return json.dumps({"type": "record", "name": name.replace("-", "_"), "fields": listed})


def register(http: httpx.Client, subject: str, schema: str, kind: str = "AVRO") -> int:
    url = f"/schema-registry/subjects/{subject}/versions"
    answer = http.post(url, json={"schema": schema, "schemaType": kind})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def test_subjects_are_listed_with_the_topics_that_use_them(console: WatchedPage, http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name}).raise_for_status()
    register(http, f"{name}-value", avro(name, id="long"))
    register(http, f"{name}-lonely", avro(name, id="long"))
    page = console.go("schemas")
    page.get_by_label("Filter by name").fill(name)
    rows = page.get_by_role("table", name="Subjects").get_by_role("row")
    expect(rows.filter(has_text=f"{name}-value")).to_contain_text(f"{name} (values)")
    expect(rows.filter(has_text=f"{name}-lonely")).to_contain_text("none")
    console.keep_picture("schemas-light")
    rows.filter(has_text=f"{name}-value").get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def test_two_versions_stand_side_by_side_with_their_differences(
    console: WatchedPage, http: httpx.Client, name: str
) -> None:
    http.put(f"/schema-registry/config/{name}", json={"compatibility": "NONE"})
    for fields in ({"id": "long"}, {"id": "long", "note": "string"}, {"id": "string"}):
        register(http, name, avro(name, **fields))
    page = console.go(f"schemas/{name}")
    expect(page.get_by_role("group", name="Version 2 and version 3")).to_be_visible()
    page.get_by_label("Left").select_option("Version 1")
    page.get_by_label("Right").select_option("Version 2")
    shown = page.get_by_role("group", name="Version 1 and version 2")
    expect(shown.locator(".added").filter(has_text="note")).to_have_count(1)
    expect(shown.locator(".removed").filter(has_text="id")).to_have_count(0)
    console.keep_picture("schema-diff-light")
    assert page.url.endswith("?left=1&right=2")


def test_compatibility_and_mode_are_changed(console: WatchedPage, http: httpx.Client, name: str) -> None:
    register(http, name, avro(name, id="long"))
    page = console.go(f"schemas/{name}")
    expect(page.get_by_label("Compatibility")).to_have_value("BACKWARD")
    page.get_by_label("Compatibility").select_option("FULL")
    expect(page.get_by_text("Compatibility is FULL now")).to_be_visible()
    page.get_by_label("Mode").select_option("READONLY")
    expect(page.get_by_text("Mode is READONLY now")).to_be_visible()
    assert http.get(f"/schema-registry/config/{name}").json() == {"compatibilityLevel": "FULL"}
    assert http.get(f"/schema-registry/mode/{name}").json() == {"mode": "READONLY"}


def test_a_version_is_checked_and_then_registered(console: WatchedPage, http: httpx.Client, name: str) -> None:
    register(http, name, avro(name, id="long"))
    page = console.go(f"schemas/{name}")
    page.get_by_role("button", name="Register version").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Schema").fill(avro(name, id="long", note="string"))
    dialog.get_by_role("button", name="Check").click()
    expect(dialog.get_by_role("status")).to_contain_text("Not compatible.")
    expect(dialog.get_by_role("status")).to_contain_text("note")
    console.keep_picture("schema-check-light")
    dialog.get_by_role("button", name="Register", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("409")
    dialog.get_by_label("Schema").fill("{")
    dialog.get_by_role("button", name="Check").click()
    expect(dialog.get_by_role("status")).to_contain_text("Invalid schema")
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}]
    new = json.dumps({"type": "record", "name": name.replace("-", "_"), "fields": fields})
    dialog.get_by_label("Schema").fill(new)
    dialog.get_by_role("button", name="Check").click()
    expect(dialog.get_by_role("status")).to_contain_text("Compatible with")
    dialog.get_by_role("button", name="Register", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("group", name="Version 1 and version 2")).to_be_visible()
    assert http.get(f"/schema-registry/subjects/{name}/versions").json() == [1, 2]


def test_a_subject_is_registered_and_deleted(console: WatchedPage, http: httpx.Client, name: str) -> None:
    page = console.go("schemas")
    page.get_by_role("button", name="Register schema").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Subject").fill(name)
    dialog.get_by_label("Type").select_option("JSON")
    dialog.get_by_label("Schema").fill('{"type": "object"}')
    dialog.get_by_role("button", name="Register", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("textbox").fill(name)
    dialog.get_by_role("button", name="Delete subject").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Schemas")
    assert http.get(f"/schema-registry/subjects/{name}/versions").status_code == 404


PROTO = 'syntax = "proto3"; message Order { string customer = 1; }'


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_messages_are_decoded_by_their_id(
    console: WatchedPage, http: httpx.Client, server: OttlaServer, name: str, kind: str
) -> None:
    url = f"http://{server.http}/schema-registry"
    make = {
        "AVRO": lambda: AvroSerializer(url, avro("Order", customer="string")),
        "JSON": lambda: JsonSchemaSerializer(url, {"type": "object", "title": "Order"}),
        "PROTOBUF": lambda: ProtobufSerializer(url, PROTO),
    }[kind]
    value = make()({"customer": "Ann"}, name)
    http.post("/v1/topics", json={"name": name}).raise_for_status()
    producer = Producer({"bootstrap.servers": server.bootstrap})
    producer.produce(name, value)
    assert producer.flush(30) == 0
    page = console.go(f"topics/{name}")
    page.locator(".rows button.row").first.click()
    drawer = page.get_by_role("dialog")
    expect(drawer).to_contain_text(f"{kind}, schema id")
    expect(drawer).to_contain_text("Ann")
    console.keep_picture(f"decoded-{kind.lower()}-light")
    drawer.get_by_role("link", name=f"{name}-value").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{name}-value")


def test_who_has_few_rights_sees_what_they_allow(browser: Browser, tmp_path: Path) -> None:
    with secured(tmp_path, acls=True, super_users=("User:admin",)) as broker, served(broker) as http:
        with http.by("admin") as admin:
            for subject in ("seen", "hidden"):
                register(admin, subject, avro(subject, id="long"))
        with broker.admin() as kafka:
            topic = ResourceType.TOPIC
            kafka.create_acls(
                Acl("User:ann", each, topic, "_schemas:seen") for each in (AclOperation.READ, AclOperation.DESCRIBE)
            )
        context = browser.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        console = WatchedPage(context.new_page(), http.url)
        console.page.goto(f"{http.url}/#/schemas")
        log_in(console.page, "ann", PASSWORDS["ann"])
        page = console.page
        table = page.get_by_role("table", name="Subjects")
        expect(table).to_contain_text("seen")
        expect(table).not_to_contain_text("hidden")
        expect(page.get_by_text("Compatibility: User:ann may not")).to_be_visible()
        page.get_by_role("link", name="seen").click()
        page.get_by_role("button", name="Register version").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Register", exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("40301")
        dialog.get_by_role("button", name="Cancel").click()
        page.goto(f"{http.url}/#/schemas/hidden")
        expect(page.get_by_text("40301")).to_be_visible()
        context.close()
        assert console.complaints == []
