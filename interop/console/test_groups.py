"""Groups: members, lag, offset resets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from interop.console.demo_data import open_consumer, read_some

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from interop.console.watched_page import WatchedPage
    from interop.ottla_server import OttlaServer


def _group(http: httpx.Client, server: OttlaServer, name: str) -> None:
    """A group that has read 6 of the 10 messages of a topic of the same name."""
    http.post("/v1/topics", json={"name": name, "partitions": 1}).raise_for_status()
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "x"}] * 10}).raise_for_status()
    read_some(server.bootstrap, name, name, 6)


def _committed(http: httpx.Client, name: str) -> int:
    [offset] = http.get(f"/v1/groups/{name}").json()["offsets"]
    committed: int = offset["committed"]
    return committed


def test_a_group_is_reset_after_a_preview(
    console: WatchedPage, http: httpx.Client, server: OttlaServer, name: str
) -> None:
    _group(http, server, name)
    page = console.go(f"groups/{name}")
    expect(page.get_by_text("0 members · 4 behind")).to_be_visible()
    page.get_by_role("button", name="Reset offsets").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Move to").select_option("By a number of messages, forward or back")
    dialog.get_by_label("Messages", exact=True).fill("-5")
    expect(dialog.get_by_role("button", name="Reset offsets")).to_be_disabled()
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator("tbody td")).to_have_text([name, "0", "6", "1", "-5"])
    console.keep_picture("reset-light")
    assert _committed(http, name) == 6

    dialog.get_by_role("button", name="Reset offsets").click()

    expect(page.get_by_text("0 members · 9 behind")).to_be_visible()
    assert _committed(http, name) == 1


def test_another_choice_requires_another_preview(
    console: WatchedPage, http: httpx.Client, server: OttlaServer, name: str
) -> None:
    _group(http, server, name)
    page = console.go(f"groups/{name}")
    page.get_by_role("button", name="Reset offsets").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_role("button", name="Reset offsets")).to_be_enabled()
    dialog.get_by_label("Move to").select_option("The end")

    expect(dialog.get_by_role("button", name="Reset offsets")).to_be_disabled()
    expect(dialog.locator("tbody td")).to_have_count(0)


def test_saved_offsets_bring_a_group_back(
    console: WatchedPage, http: httpx.Client, server: OttlaServer, name: str, tmp_path: Path
) -> None:
    _group(http, server, name)
    page = console.go(f"groups/{name}")
    with page.expect_download() as saving:
        page.get_by_role("link", name="Save offsets").click()
    saved = tmp_path / "offsets.json"
    saving.value.save_as(saved)
    http.post(f"/v1/groups/{name}/reset", json={"to": "latest"}).raise_for_status()
    page.get_by_role("button", name="Reset offsets").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Move to").select_option("Offsets from a file")
    dialog.get_by_label("File", exact=True).set_input_files(saved)
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Reset offsets").click()

    expect(dialog).to_have_count(0)
    assert _committed(http, name) == 6


def test_members_and_what_they_read_are_shown_and_keep_the_group_from_being_deleted(
    console: WatchedPage, http: httpx.Client, server: OttlaServer, name: str
) -> None:
    _group(http, server, name)
    consumer = open_consumer(server.bootstrap, name, name)
    try:
        assert consumer.poll(20) is not None
        page = console.go(f"groups/{name}")
        members = page.locator("section.card", has=page.get_by_role("heading", name="Members"))
        expect(members.locator("tbody tr")).to_contain_text(["rdkafka"])
        expect(members.locator("tbody tr")).to_contain_text([f"{name} 0"])
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("textbox").fill(name)
        page.get_by_role("button", name="Delete group").click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("Stop the members of the group first.")
    finally:
        consumer.close()


def test_a_group_without_members_is_deleted(
    console: WatchedPage, http: httpx.Client, server: OttlaServer, name: str
) -> None:
    _group(http, server, name)
    page = console.go(f"groups/{name}")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("textbox").fill(name)
    page.get_by_role("button", name="Delete group").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Groups")
    assert http.get(f"/v1/groups/{name}").status_code == 404
