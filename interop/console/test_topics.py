"""Topics: created, changed, emptied and deleted in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    import httpx

    from interop.console.watched_page import WatchedPage


def test_a_topic_is_created_with_what_the_form_says(console: WatchedPage, http: httpx.Client, name: str) -> None:
    page = console.go("topics")
    page.get_by_role("button", name="Create topic").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Partitions").fill("5")
    page.get_by_label("Keep messages for").select_option("1 day")
    page.get_by_label("Other configs").fill("max.message.bytes=2097152")
    console.keep_picture("create-topic-light")
    page.get_by_role("dialog").get_by_role("button", name="Create", exact=True).click()

    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    topic = http.get(f"/v1/topics/{name}").json()
    assert len(topic["partitions"]) == 5
    assert topic["configs"] == {"retention.ms": "86400000", "max.message.bytes": "2097152"}


def test_a_name_that_is_taken_is_refused_in_the_dialog(console: WatchedPage) -> None:
    page = console.go("topics")
    page.get_by_role("button", name="Create topic").click()
    page.get_by_label("Name", exact=True).fill("orders")
    page.get_by_role("dialog").get_by_role("button", name="Create", exact=True).click()

    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("TOPIC_ALREADY_EXISTS")


def test_a_topic_is_deleted_once_its_name_is_typed(console: WatchedPage, http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name}).raise_for_status()
    page = console.go("topics")
    page.get_by_role("button", name=f"Delete {name}", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("something else")
    dialog.get_by_role("button", name="Delete topic").click()
    assert http.get(f"/v1/topics/{name}").status_code == 200

    dialog.get_by_role("textbox").fill(name)
    dialog.get_by_role("button", name="Delete topic").click()

    expect(dialog).to_have_count(0)
    expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
    assert http.get(f"/v1/topics/{name}").status_code == 404


def test_the_list_is_filtered_and_sorted(console: WatchedPage) -> None:
    page = console.go("topics")
    names = page.locator("tbody td:first-child a")
    page.get_by_role("button", name="Size").click()
    expect(names.first).to_have_text("page-views")
    expect(page.get_by_role("columnheader", name="Size")).to_have_attribute("aria-sort", "descending")
    page.keyboard.press("/")
    page.keyboard.type("invo")

    expect(names).to_have_text(["invoices"])


def test_a_config_is_changed_and_reset(console: WatchedPage, http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name}).raise_for_status()
    page = console.go(f"topics/{name}/configs")
    row = page.get_by_role("row").filter(has_text="segment.bytes").first
    row.get_by_role("button", name="Edit").click()
    page.get_by_label("Value").fill("2097152")
    expect(page.get_by_role("dialog")).to_contain_text("2 MiB")
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("set for this topic")
    assert http.get(f"/v1/topics/{name}").json()["configs"] == {"segment.bytes": "2097152"}

    row.get_by_role("button", name="Edit").click()
    page.get_by_label("Use the default instead").check()
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("default")
    assert http.get(f"/v1/topics/{name}").json()["configs"] == {}


def test_an_invalid_config_shows_the_brokers_error(console: WatchedPage) -> None:
    page = console.go("topics/invoices/configs")
    page.get_by_role("button", name="Edit retention.ms").click()
    page.get_by_label("Value").fill("soon")
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("INVALID_CONFIG")


def test_partitions_are_added_and_messages_deleted(console: WatchedPage, http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name, "partitions": 1}).raise_for_status()
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "x"}] * 9}).raise_for_status()
    page = console.go(f"topics/{name}/partitions")
    page.get_by_role("button", name="Add partitions").click()
    page.get_by_label("Partitions altogether").fill("3")
    page.get_by_role("dialog").get_by_role("button", name="Add partitions").click()
    expect(page.locator("tbody").first.get_by_role("row")).to_have_count(3)

    page.get_by_role("button", name="Delete messages").click()
    page.get_by_label("Before offset").fill("4")
    page.get_by_role("dialog").get_by_role("button", name="Delete messages").click()
    expect(page.get_by_text("Partition 0 now begins at offset 4")).to_be_visible()
    assert http.get(f"/v1/topics/{name}").json()["partitions"][0]["start_offset"] == 4


def test_all_messages_of_a_partition_are_deleted_only_once_the_topic_is_typed(
    console: WatchedPage, http: httpx.Client, name: str
) -> None:
    http.post("/v1/topics", json={"name": name, "partitions": 1}).raise_for_status()
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "x"}] * 9}).raise_for_status()
    page = console.go(f"topics/{name}/partitions")
    page.get_by_role("button", name="Delete messages").click()
    dialog = page.get_by_role("dialog")
    delete = dialog.get_by_role("button", name="Delete messages")

    delete.click()  # with an empty field
    dialog.get_by_label("Messages").select_option("All")
    delete.click()
    expect(dialog).to_be_visible()
    assert http.get(f"/v1/topics/{name}").json()["partitions"][0]["start_offset"] == 0
    dialog.get_by_label(f"Type {name}").fill(name)
    delete.click()

    expect(page.get_by_text("Partition 0 now begins at offset 9")).to_be_visible()
