"""Content security policy, keyboard use, load time, and an unreachable broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from interop.console.watched_page import WatchedPage

FIRST_PAINT_MS = 1000
MOST_TABS = 40


def test_only_the_consoles_scripts_run(console: WatchedPage) -> None:
    page = console.go("")
    violations = page.evaluate(
        """async () => {
          const seen = [];
          document.addEventListener("securitypolicyviolation", (event) => seen.push(event.effectiveDirective));
          const script = document.createElement("script");
          try { script.textContent = "window.wasRun = true"; } catch { seen.push("script"); }
          document.head.append(script);
          try { document.body.innerHTML = "<b>x</b>"; } catch { seen.push("innerHTML"); }
          await fetch("http://127.0.0.2:9/").catch(() => seen.push("fetch"));
          await new Promise((resolve) => setTimeout(resolve, 50));
          return [...seen, window.wasRun ? "ran" : "never ran"];
        }"""
    )

    assert "never ran" in violations
    assert "connect-src" in violations
    assert "innerHTML" in violations
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    # These were ours.
    console.complaints.clear()


def _tab_to(page: Page, name: str) -> None:
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        told = page.evaluate(
            "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).trim()"
        )
        if told == name:
            return
    raise AssertionError(f"the keyboard does not reach {name}")


def test_a_topic_is_created_written_to_and_read_with_the_keyboard_alone(
    console: WatchedPage, http: httpx.Client, name: str
) -> None:
    page = console.go("")
    _tab_to(page, "Topics")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
    _tab_to(page, "Create topic")
    page.keyboard.press("Enter")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    _tab_to(page, "Produce")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "value":
            break
    page.keyboard.type("typed by hand")
    _tab_to(page, "Send")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 message written")).to_be_visible()
    _tab_to(page, "partition 0, offset 0")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("Partition 0, offset 0")
    expect(page.get_by_role("main").locator("pre.text").first).to_have_text("typed by hand")
    assert http.get(f"/v1/topics/{name}").json()["messages"] == 1


def test_every_control_has_a_name(console: WatchedPage) -> None:
    for place in ("", "topics", "topics/orders", "topics/orders/produce", "groups/billing", "cluster", "connect"):
        page = console.go(place)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, a, input, select, textarea")].filter((one) =>
              !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.[0]?.textContent.trim())
            ).map((one) => one.outerHTML)"""
        )
        assert nameless == [], place


def test_the_page_loads_in_under_a_second(open_console: Callable[..., WatchedPage]) -> None:
    paints = []
    for _ in range(5):
        # A new context has an empty cache: nothing is warm but the broker.
        page = open_console().go("")
        expect(page.locator(".figure").first).to_be_visible()
        shown_ms = page.evaluate("performance.now()")
        paint_ms = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        paints.append((paint_ms, shown_ms))
    first_paint, usable = sorted(paints)[len(paints) // 2]
    requests = page.evaluate("performance.getEntriesByType('resource').length")
    print(f"console: first paint {first_paint:.0f} ms, figures shown by {usable:.0f} ms, {requests} requests")

    assert first_paint < FIRST_PAINT_MS
    assert usable < 2 * FIRST_PAINT_MS


def test_a_second_visit_loads_files_from_the_cache(console: WatchedPage) -> None:
    page = console.go("")
    page.reload()
    expect(page.locator(".figure").first).to_be_visible()
    fetched = page.evaluate(
        """performance.getEntriesByType("resource")
          .filter((one) => one.name.includes("/console/") && one.transferSize > 0).map((one) => one.name)"""
    )

    assert fetched == []


def test_an_unreachable_broker_is_reported_until_it_is_back(console: WatchedPage) -> None:
    page = console.go("")
    expect(page.locator(".broker")).to_contain_text("127.0.0.1")
    page.context.set_offline(True)
    expect(page.locator(".broker")).to_have_text("The broker does not answer")
    page.context.set_offline(False)

    expect(page.locator(".broker")).to_contain_text("127.0.0.1")
