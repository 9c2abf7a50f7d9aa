"""The live tail keeps up, reports skipped messages, and the page stays responsive."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    import httpx

    from interop.console.watched_page import WatchedPage
    from interop.ottla_server import OttlaServer

RATE = 1000
SECONDS = 8
PER_TURN = 50
PATIENCE_MS = 30_000
LONGEST_GAP_MS = 1000
USUAL_GAP_MS = 150

WATCH_GAPS = """() => {
  window.gaps = [];
  let before = performance.now();
  const look = () => { const now = performance.now(); gaps.push(now - before); before = now; setTimeout(look, 20); };
  look();
}"""


def _produce_steadily(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    began = time.monotonic()
    for sent in range(0, RATE * SECONDS, PER_TURN):
        for number in range(sent, sent + PER_TURN):
            producer.produce(topic, key=f"key-{number % 50}", value=f'{{"number": {number}, "text": "{"x" * 150}"}}')
        producer.poll(0)
        time.sleep(max(0.0, began + (sent + PER_TURN) / RATE - time.monotonic()))
    producer.flush(30)


def _open_tail(console: WatchedPage, topic: str) -> Page:
    page = console.go(f"topics/{topic}/live")
    expect(page.get_by_text(re.compile(r"^0/s · 0 received"))).to_be_visible()
    return page


def test_it_keeps_up_with_a_thousand_messages_a_second(
    console: WatchedPage, server: OttlaServer, http: httpx.Client, name: str
) -> None:
    http.post("/v1/topics", json={"name": name, "partitions": 2}).raise_for_status()
    page = _open_tail(console, name)
    page.evaluate(WATCH_GAPS)
    producing = threading.Thread(target=_produce_steadily, args=(server.bootstrap, name))
    producing.start()
    expect(page.get_by_text(re.compile(r"[2-4],\d{3} received"))).to_be_visible(timeout=PATIENCE_MS)
    pressed = time.perf_counter()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused")).to_be_visible()
    took_ms = (time.perf_counter() - pressed) * 1000
    console.keep_picture("tail-busy-light")
    page.get_by_role("button", name="Resume").click()
    producing.join()

    expect(page.get_by_text(f"{RATE * SECONDS:,} received")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator(".tail-view .row .value").last).to_contain_text('"number"')
    gaps = sorted(page.evaluate("gaps"))
    usual, longest = gaps[int(len(gaps) * 0.95)], gaps[-1]
    print(f"live tail at {RATE}/s: 95 % of gaps under {usual:.0f} ms, longest {longest:.0f}, pause in {took_ms:.0f} ms")
    assert usual < USUAL_GAP_MS
    assert longest < LONGEST_GAP_MS
    assert page.locator(".tail-view .row").count() < 100
    expect(page.get_by_text("older ones no longer kept")).to_be_visible()


def test_messages_skipped_by_the_broker_are_reported(console: WatchedPage, http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name, "partitions": 1}).raise_for_status()
    page = _open_tail(console, name)
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "first"}]}).raise_for_status()
    expect(page.get_by_text("1 received")).to_be_visible()

    # One batch, further ahead than a tail follows.
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "x"}] * 30_000}).raise_for_status()

    expect(page.get_by_text("30,000 messages skipped, partition 0, offsets 1 to 30001")).to_be_visible()
    expect(page.get_by_text("30,000 skipped by the broker")).to_be_visible()


def test_only_matching_messages_are_shown(console: WatchedPage, http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name, "partitions": 1}).raise_for_status()
    page = _open_tail(console, name)
    page.get_by_label("Value contains").fill("tea")
    with page.expect_response(lambda answer: "contains=tea" in answer.url):
        page.get_by_role("button", name="Apply").click()
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "coffee"}, {"value": "green tea"}]})

    expect(page.locator(".tail-view .row .value")).to_have_text(["green tea"])


def test_a_message_of_the_tail_opens_and_the_tail_waits(console: WatchedPage, http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name, "partitions": 1}).raise_for_status()
    page = _open_tail(console, name)
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"key": "k", "value": "look at me"}]})
    page.locator(".tail-view .row").click()

    expect(page.get_by_role("dialog").locator("pre.text").first).to_have_text("look at me")
    page.keyboard.press("Escape")
    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "later"}]})
    expect(page.get_by_text("paused, 1 waiting")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".tail-view .row .value")).to_have_text(["look at me", "later"])


def test_a_topic_that_is_deleted_ends_its_tail_with_the_reason(
    console: WatchedPage, http: httpx.Client, name: str
) -> None:
    http.post("/v1/topics", json={"name": name, "partitions": 1}).raise_for_status()
    page = _open_tail(console, name)
    http.delete(f"/v1/topics/{name}").raise_for_status()

    expect(page.get_by_role("alert")).to_be_visible(timeout=PATIENCE_MS)


def test_a_tail_that_has_nothing_yet_says_what_will_come(console: WatchedPage, http: httpx.Client, name: str) -> None:
    http.post("/v1/topics", json={"name": name}).raise_for_status()
    page = console.go(f"topics/{name}/live")
    waiting = page.get_by_text("Messages appear here as they are written.")
    expect(waiting).to_be_visible()
    expect(page.locator("main")).to_contain_text("0/s")

    http.post(f"/v1/topics/{name}/messages", json={"messages": [{"value": "two coffees"}]}).raise_for_status()

    expect(page.locator("button.row")).to_contain_text("two coffees")
    expect(waiting).to_be_hidden()
