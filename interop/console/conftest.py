"""A broker with content, and Debian's Chromium to look at it with."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from interop.console.demo_data import fill
from interop.console.watched_page import WatchedPage
from interop.ottla_server import OttlaServer, ottla_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP = {"width": 1280, "height": 860}
PATIENCE_MS = 20_000

_numbers = count(1)


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServer]:
    with ottla_server(tmp_path_factory.mktemp("console"), serves_http=True) as server:
        with httpx.Client(base_url=f"http://{server.http}", timeout=30) as http:
            fill(http, server.bootstrap)
        yield server


@pytest.fixture
def http(server: OttlaServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{server.http}", timeout=30) as client:
        yield client


# Not for the whole session: as long as it is there, an event loop runs in this thread, and asyncio.run refuses.
@pytest.fixture(scope="package")
def browser(chromium: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_console(browser: Browser, server: OttlaServer) -> Iterator[Callable[..., WatchedPage]]:
    """Opens consoles with these options of a browser context; none of them may have complained when the test ends."""
    opened: list[WatchedPage] = []

    def open_one(**options: object) -> WatchedPage:
        context = browser.new_context(**{"viewport": DESKTOP, **options})  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        watched = WatchedPage(context.new_page(), f"http://{server.http}")
        opened.append(watched)
        return watched

    yield open_one
    for watched in opened:
        watched.page.context.close()
    assert [one.complaints for one in opened if one.complaints] == []
    assert [one.foreign_requests for one in opened if one.foreign_requests] == []


@pytest.fixture
def console(open_console: Callable[..., WatchedPage]) -> WatchedPage:
    return open_console()


@pytest.fixture
def name() -> str:
    """A topic or group name that no other test uses."""
    return f"test-{next(_numbers)}"
