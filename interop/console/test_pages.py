"""Every page, on a desk and on a phone, in light and in dark."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx
    from playwright.sync_api import Route

    from interop.console.watched_page import WatchedPage

PHONE = {"width": 390, "height": 844}

PAGES = {
    "overview": ("", "Largest topics"),
    "topics": ("topics", "page-views"),
    "messages": ("topics/orders", "newest first"),
    "tail": ("topics/orders/live", "received"),
    "produce": ("topics/orders/produce", "Add header"),
    "consumers": ("topics/orders/consumers", "billing"),
    "partitions": ("topics/page-views/partitions", "00000000000000000000.log"),
    "configs": ("topics/orders/configs", "retention.ms"),
    "groups": ("groups", "billing"),
    "group": ("groups/billing", "Lag by partition"),
    "transactions": ("transactions", "shop-checkout"),
    "transaction": ("transactions/shop-checkout", "Ongoing"),
    "schemas": ("schemas", "invoices-value"),
    "subject": ("schemas/invoices-value", "the latest with id"),
    "pipelines": ("pipelines", "orders-to-lake"),
    "pipeline": ("pipelines/orders-to-lake", "has not been heard of"),
    "cluster": ("cluster", "Log folders"),
    "connect": ("connect", "bootstrap.servers"),
}


@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_its_content(console: WatchedPage, page: str) -> None:
    place, content = PAGES[page]

    main = console.go(place).locator("main")

    expect(main.get_by_text(content).first).to_be_visible()
    expect(main.locator(".problem")).to_have_count(0)
    console.keep_picture(f"{page}-light")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_a_phone_in_the_dark(open_console: Callable[..., WatchedPage], page: str) -> None:
    place, content = PAGES[page]
    console = open_console(viewport=PHONE, color_scheme="dark", has_touch=True)

    shown = console.go(place)

    expect(shown.locator("main").get_by_text(content).first).to_be_attached()
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    brightness = shown.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert max(brightness) < 64
    console.keep_picture(f"{page}-phone-dark")


def test_the_menu_leads_to_every_page_and_back(console: WatchedPage) -> None:
    page = console.go("")
    for label in ("Topics", "Groups", "Cluster", "Connect", "Overview"):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=label).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(label)
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Connect")


def test_the_overview_draws_rates_with_values_under_the_pointer(console: WatchedPage, http: httpx.Client) -> None:
    page = console.go("")
    chart = page.locator("line-chart").first

    expect(chart.locator("polyline.series-1")).to_be_attached()
    chart.hover()
    expect(chart.locator(".readout")).to_contain_text("Out")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    expect(chart.locator(".readout time")).to_be_visible()
    assert chart.locator(".tick").count() >= 7
    groups = http.get("/v1/broker").json()["groups"]
    expect(page.locator(".figure", has_text="Groups").locator("b")).to_have_text(str(groups))


def test_an_unknown_topic_shows_the_brokers_error(console: WatchedPage) -> None:
    console.page.goto(f"{console.home}/#/topics/nothing-here")

    problem = console.page.get_by_role("alert")
    expect(problem).to_contain_text("no topic 'nothing-here'")
    expect(problem).to_contain_text("UNKNOWN_TOPIC_OR_PARTITION")
    expect(problem).not_to_contain_text("/v1/")
    expect(problem.get_by_role("link", name="All topics")).to_have_attribute("href", "#/topics")


def test_requests_for_unknown_names_are_not_counted_as_faults(console: WatchedPage, http: httpx.Client) -> None:
    totals = http.get("/v1/totals").json()
    lookups = [
        {"api": "DescribeGroups", "error": "GROUP_ID_NOT_FOUND", "count": 3},
        {"api": "Metadata", "error": "UNKNOWN_TOPIC_ID", "count": 2},
    ]
    totals |= {"request_errors": lookups, "connection_faults": {"timeout": 1}}
    console.page.route("**/v1/totals", lambda route: route.fulfill(json=totals))
    page = console.go("")

    figure = page.locator(".figure", has_text="Faults")
    expect(figure).to_contain_text("none so far")
    expect(figure).not_to_have_class("figure is-bad")
    totals["request_errors"] = [{"api": "Produce", "error": "KAFKA_STORAGE_ERROR", "count": 2}]
    expect(figure).to_have_class("figure is-bad")
    expect(figure.locator("b")).to_have_text("2")


@pytest.mark.parametrize("place", ["nowhere/at/all", "%E0%A4%A"])
def test_an_unknown_address_is_reported(console: WatchedPage, place: str) -> None:
    console.page.goto(f"{console.home}/#/{place}")

    expect(console.page.get_by_role("alert")).to_contain_text("There is no such page")


@pytest.mark.parametrize(
    ("place", "asked", "answer", "said"),
    [
        ("topics", "**/v1/topics?*", {"topics": []}, "No topics yet. Create one"),
        ("groups", "**/v1/groups", {"groups": []}, "No groups yet"),
        ("pipelines", "**/v1/pipelines", {"pipelines": []}, "ottla pipeline init TOPIC"),
    ],
)
def test_a_page_without_content_says_how_to_begin(
    console: WatchedPage, place: str, asked: str, answer: dict[str, list[object]], said: str
) -> None:
    console.page.route(asked, lambda route: route.fulfill(json=answer))

    expect(console.go(place).locator("main")).to_contain_text(said)


def test_a_filter_without_matches_is_distinguished_from_no_content(console: WatchedPage) -> None:
    page = console.go("topics")
    page.get_by_label("Filter by name").fill("no such name")

    expect(page.locator("main")).to_contain_text("No topic matches.")


def test_the_labels_of_the_menu_do_not_overlap_on_a_phone(open_console: Callable[..., WatchedPage]) -> None:
    page = open_console(viewport=PHONE).go("connect")
    boxes = [label.bounding_box() for label in page.locator("nav[aria-label=Pages] a span").all()]
    places = [(box["x"], box["x"] + box["width"]) for box in boxes if box is not None]

    assert len(places) >= 8
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    expect(page.get_by_role("link", name="Connect")).to_be_in_viewport(ratio=0.9)


def test_the_tab_that_is_shown_is_in_sight_on_a_phone(open_console: Callable[..., WatchedPage]) -> None:
    page = open_console(viewport={"width": 320, "height": 700}).go("topics/orders/configs")

    expect(page.get_by_role("link", name="Configs")).to_be_in_viewport(ratio=0.9)


def test_a_topic_with_thousands_of_partitions_has_only_the_visible_rows_in_the_page(
    console: WatchedPage, http: httpx.Client
) -> None:
    topic = http.get("/v1/topics/orders").json()
    [one, *_] = topic["partitions"]
    topic["partitions"] = [one | {"partition": number, "segments": []} for number in range(5_000)]
    console.page.route("**/v1/topics/orders", lambda route: route.fulfill(json=topic))
    page = console.go("topics/orders/partitions")

    rows = page.get_by_role("table", name="Partitions").locator("tbody tr:not(.spacer)")
    expect(rows.first).to_contain_text("0")
    assert rows.count() < 150
    assert page.evaluate("document.querySelectorAll('*').length") < 3_000
    page.mouse.move(600, 600)
    page.mouse.wheel(0, 1_000_000)
    expect(page.get_by_role("link", name="4999", exact=True)).to_be_visible()
    assert rows.count() < 150


def test_a_page_that_takes_long_says_what_it_waits_for(console: WatchedPage, http: httpx.Client) -> None:
    broker = http.get("/v1/broker").json() | {"partitions": 7_000}
    console.page.route("**/v1/broker", lambda route: route.fulfill(json=broker))
    page = console.go("")
    expect(page.locator(".figure").first).to_contain_text("7,000 partitions")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/topics?*", hold)

    page.goto(f"{console.home}/#/topics")

    expect(page.locator("main")).to_have_text("Opening 7,000 partitions …")
    held[0].continue_()
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
