"""Writing messages, finding them again, and looking into them."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING

from playwright.sync_api import Locator, Page, expect

from interop.console.demo_data import LONG_ID, READING_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from interop.console.watched_page import WatchedPage


def _row(page: Page, place: str) -> Locator:
    return page.locator("button.row").filter(has=page.locator(".at", has_text=place))


def test_a_message_written_with_the_form_is_found_with_its_key_headers_and_json(
    console: WatchedPage, name: str
) -> None:
    console.page.goto(console.home)
    page = console.page
    page.evaluate("name => fetch('/v1/topics', {method: 'POST', body: JSON.stringify({name})})", name)
    console.go(f"topics/{name}/produce")
    page.get_by_label("Key", exact=True).fill("ann")
    page.get_by_label("Value", exact=True).fill('{"id": 9223372036854775807, "drinks": ["tea"]}')
    page.get_by_label("Value is").select_option("JSON")
    page.get_by_role("button", name="Add header").click()
    page.get_by_label("Header name").fill("trace")
    page.get_by_label("Header value").fill("42")
    page.get_by_role("button", name="Send").click()
    page.get_by_role("link", name="partition 0, offset 0").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Partition 0, offset 0")
    shown = page.get_by_role("main")
    expect(shown.locator("pre.json")).to_have_text('{\n  "id": 9223372036854775807,\n  "drinks": [\n    "tea"\n  ]\n}')
    expect(shown).to_contain_text("trace")
    expect(shown.locator("pre.text")).to_have_text("ann")


def test_an_invalid_json_value_is_not_sent(console: WatchedPage, http: httpx.Client) -> None:
    before = http.get("/v1/topics/invoices").json()["messages"]
    page = console.go("topics/invoices/produce")
    page.get_by_label("Value", exact=True).fill("{not json")
    page.get_by_label("Value is").select_option("JSON")
    page.get_by_role("button", name="Send").click()

    expect(page.get_by_role("alert")).to_contain_text("The value is not JSON")
    assert http.get("/v1/topics/invoices").json()["messages"] == before


def test_the_browser_jumps_to_an_offset_and_reads_on_from_there(console: WatchedPage) -> None:
    page = console.go("topics/orders")
    page.get_by_label("From").select_option("Offset")
    page.get_by_label("Offset", exact=True).fill("100")
    page.get_by_label("Partition").select_option("Partition 1")
    page.get_by_role("button", name="Show").click()

    expect(page.locator("button.row").first).to_contain_text("1:100")
    expect(page.locator("button.row")).to_have_count(50)
    page.get_by_role("button", name="More").click()
    expect(page.locator("button.row")).to_have_count(100)
    expect(page.locator("button.row").last).to_contain_text("1:199")


def test_an_offset_out_of_range_shows_the_brokers_error(console: WatchedPage) -> None:
    page = console.go("topics/orders?from=offset&partition=0&offset=99999999")

    expect(page.get_by_role("alert")).to_contain_text("99999999")
    expect(page.get_by_role("alert")).to_contain_text("OFFSET_OUT_OF_RANGE")


def test_the_browser_jumps_to_a_time(console: WatchedPage, http: httpx.Client, name: str) -> None:
    hour_ms = 3_600_000
    noon_ms = 1_700_000_000_000
    messages = [{"value": f"hour {hour}", "timestamp": noon_ms + hour * hour_ms} for hour in range(5)]
    http.post(f"/v1/topics/{name}/messages", json={"messages": messages}).raise_for_status()
    page = console.go(f"topics/{name}")
    at = "ms => { const t = new Date(ms); t.setMinutes(t.getMinutes() - t.getTimezoneOffset()); "
    local = page.evaluate(at + "return t.toISOString().slice(0, 19); }", noon_ms + 3 * hour_ms)
    page.get_by_label("From").select_option("Time")
    page.get_by_label("Time", exact=True).fill(local)
    page.get_by_role("button", name="Show").click()

    expect(page.locator("button.row .value")).to_have_text(["hour 3", "hour 4"])
    page.reload()
    expect(page.locator("button.row .value")).to_have_text(["hour 3", "hour 4"])


def test_older_messages_come_before_the_newest_without_gaps(console: WatchedPage) -> None:
    page = console.go("topics/orders?partition=2")
    expect(page.locator("button.row")).to_have_count(50)
    page.get_by_role("button", name="Older").click()
    expect(page.locator("button.row")).to_have_count(100)

    offsets = [int(text.partition(":")[2]) for text in page.locator("button.row .at").all_inner_texts()]
    assert offsets == list(range(offsets[0], offsets[0] - 100, -1))


def test_filters_find_by_key_text_and_json_path(console: WatchedPage) -> None:
    page = console.go("topics/orders?from=oldest")
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Key is").fill("customer-7")
    page.get_by_label("JSON path").fill("$.order")
    page.get_by_label("…is").fill("7")
    page.get_by_role("button", name="Show").click()

    expect(page.locator("button.row")).to_have_count(1)
    expect(page.locator("button.row .value")).to_contain_text(f'"id": {LONG_ID + 14}')
    expect(page.get_by_text("1 message, found in 1,500 messages. That is all.")).to_be_visible()


def test_a_filter_that_finds_nothing_says_how_far_it_looked(console: WatchedPage) -> None:
    page = console.go("topics/orders?from=oldest&contains=no-such-thing")

    expect(page.get_by_text("Nothing found in 1,500 messages.")).to_be_visible()


def test_a_long_search_shows_progress_and_can_be_stopped_and_continued(console: WatchedPage) -> None:
    page = console.go("topics/invoices")
    far = {"topic": "invoices", "messages": [], "next": "0:200000", "is_end": False, "scanned": 200_000}
    page.route("**/messages?*contains=needle*", lambda route: route.fulfill(json=far))
    page.get_by_label("From").select_option("Oldest")
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Value contains").fill("needle")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Found 0, looked at")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Nothing found in")).to_be_visible()

    last = {**far, "is_end": True, "scanned": 1}
    page.unroute_all()
    page.route("**/messages?*contains=needle*", lambda route: route.fulfill(json=last))
    page.get_by_role("button", name="More").click()
    expect(page.get_by_role("button", name="More")).to_have_count(0)


def test_text_in_a_message_stays_text(console: WatchedPage, http: httpx.Client, name: str) -> None:
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"key": hostile, "value": hostile}]})
    page = console.go(f"topics/{name}")

    expect(page.locator("button.row .value")).to_have_text(hostile)
    assert page.locator("main img, main script").count() == 0


def test_bytes_are_shown_as_hex_and_avro_as_a_guess_or_by_its_schema(console: WatchedPage) -> None:
    page = console.go("topics/sensor-readings?from=offset&partition=0&offset=1")
    _row(page, "0:1").first.click()
    drawer = page.get_by_role("dialog")

    expect(drawer).to_contain_text("schema id 42")
    guessed = drawer.locator("tbody tr")
    expect(guessed.nth(0)).to_contain_text("sensor-1")
    expect(guessed.nth(1)).to_contain_text("1794725428734")
    expect(guessed.nth(2)).to_contain_text("20.642857142857142")
    schema = drawer.get_by_label("Its schema, if you have it")
    schema.fill(json.dumps(READING_SCHEMA))
    schema.blur()
    expect(drawer.locator("pre.json").first).to_contain_text('"room": "kitchen"')
    expect(drawer.locator("pre.json").first).to_contain_text('"at": 1794725428734')
    console.keep_picture("avro-light")
    drawer.get_by_role("group", name="Value as").get_by_role("button", name="Hex").click()
    expect(drawer.locator("pre").first).to_contain_text("000000  00 00 00 00 2a 10 73 65  6e 73 6f 72 2d 31")


def test_a_long_value_is_shown_by_its_beginning_and_whole_when_opened(
    console: WatchedPage, http: httpx.Client, name: str
) -> None:
    long = "ä" * 100_000
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": long}]}).raise_for_status()
    page = console.go(f"topics/{name}")
    assert len(page.locator("button.row .value").inner_text()) == 150
    page.locator("button.row").click()

    expect(page.get_by_role("dialog")).to_contain_text("The first 64 KiB of 195 KiB.")


def test_the_arrow_keys_go_through_the_messages(console: WatchedPage) -> None:
    page = console.go("topics/orders?from=offset&partition=0&offset=5")
    _row(page, "0:5").first.click()
    title = page.get_by_role("dialog").get_by_role("heading", level=2).first
    expect(title).to_have_text("orders, partition 0, offset 5")
    console.keep_picture("message-light")
    page.keyboard.press("ArrowRight")
    expect(title).to_have_text("orders, partition 0, offset 6")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_command_that_is_copied_reads_the_message(open_console: Callable[..., WatchedPage]) -> None:
    console = open_console(permissions=["clipboard-read", "clipboard-write"])
    page = console.go("topics/orders?from=offset&partition=0&offset=3")
    _row(page, "0:3").first.click()
    copied = {}
    for number, label in enumerate(("kcat", "curl", "Python"), 1):
        page.get_by_role("button", name=label, exact=True).click()
        expect(page.get_by_text("Copied")).to_have_count(number)
        copied[label] = page.evaluate("navigator.clipboard.readText()")

    assert " -t 'orders' -p 0 -o 3 -c 1" in copied["kcat"]
    assert 'TopicPartition("orders", 0, 3)' in copied["Python"]
    told = subprocess.run([*shlex.split(copied["curl"]), "-s"], capture_output=True, timeout=20, check=True)
    assert [message["offset"] for message in json.loads(told.stdout)["messages"]] == [3]


def test_empty_and_null_are_distinguished_and_a_short_topic_is_shown_to_its_start(
    console: WatchedPage, http: httpx.Client, name: str
) -> None:
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"key": "", "value": None}]}).raise_for_status()

    page = console.go(f"topics/{name}")

    row = page.locator("button.row")
    expect(row.locator(".key")).to_have_text("empty")
    expect(row.locator(".value")).to_have_text("none")
    expect(page.get_by_role("status")).to_contain_text("That is all.")
    expect(page.get_by_role("button", name="Older")).to_have_count(0)
    row.click()
    expect(page.get_by_role("dialog")).to_contain_text("Empty: no bytes.")


def test_back_closes_an_opened_message_and_leaves_the_list_as_it_was(console: WatchedPage) -> None:
    page = console.go("topics/orders?from=offset&partition=0&offset=5")
    rows = page.locator("button.row").all_text_contents()
    _row(page, "0:5").first.click()
    expect(page).to_have_url(f"{console.home}/#/topics/orders/messages/0/5")

    page.go_back()

    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.locator("button.row").all_text_contents() == rows
    _row(page, "0:5").first.click()
    page.keyboard.press("Escape")
    expect(page).to_have_url(f"{console.home}/#/topics/orders?from=offset&partition=0&offset=5")


def test_the_address_of_a_message_shows_it(console: WatchedPage) -> None:
    page = console.go("topics/orders/messages/0/5")

    expect(page.get_by_role("heading", level=1)).to_have_text("Partition 0, offset 5")
    expect(page.locator("pre.json").first).to_be_visible()
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Partition 0, offset 6")


def test_characters_that_reorder_text_are_shown_by_name(console: WatchedPage, http: httpx.Client, name: str) -> None:
    headers = [{"name": "h\u200f", "value": "v"}]
    message = {"key": "a\u202eb", "value": '{"file": "\u2066exe.txt"}', "headers": headers}
    http.post(f"/v1/topics/{name}/messages", json={"messages": [message]}).raise_for_status()
    page = console.go(f"topics/{name}")
    expect(page.locator("button.row .key")).to_have_text("a⟨U+202E⟩b")

    page.locator("button.row").click()

    drawer = page.get_by_role("dialog")
    expect(drawer.locator("pre.json")).to_contain_text("⟨U+2066⟩exe.txt")
    expect(drawer).to_contain_text("h⟨U+200F⟩")
    assert not set("\u202e\u2066\u200f") & set(page.locator("body").inner_text())


def test_messages_and_a_value_are_saved_as_files(console: WatchedPage, http: httpx.Client, name: str) -> None:
    messages = [
        {"key": "k", "value": 'say "hi", twice', "partition": 0},
        {"value": "AP8=", "value_encoding": "base64", "partition": 0},
    ]
    http.post("/v1/topics", json={"name": name, "partitions": 1}).raise_for_status()
    http.post(f"/v1/topics/{name}/messages", json={"messages": messages}).raise_for_status()
    page = console.go(f"topics/{name}?from=oldest")

    def saved(label: str) -> tuple[str, str]:
        with page.expect_download() as saving:
            page.get_by_role("button", name=label, exact=True).click()
        return saving.value.suggested_filename, saving.value.path().read_bytes().decode()

    file, content = saved("JSON lines")
    lines = [json.loads(line) for line in content.splitlines()]
    assert file == f"{name}.ndjson"
    assert [(one["offset"], one["key"], one["value"]) for one in lines] == [
        (0, "k", 'say "hi", twice'),
        (1, None, "AP8="),
    ]
    assert lines[1]["value_encoding"] == "base64"
    file, content = saved("CSV")
    assert content.splitlines()[0] == "partition,offset,timestamp,key,key_encoding,value,value_encoding,headers"
    assert ',k,,"say ""hi"", twice",,' in content
    _row(page, "0:0").first.click()
    with page.expect_download() as saving:
        page.get_by_role("dialog").get_by_role("button", name="Download").first.click()
    assert saving.value.suggested_filename == f"{name}-0-0-value.txt"
    assert saving.value.path().read_bytes() == b'say "hi", twice'
