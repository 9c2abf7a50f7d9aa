"""A page of the console, and everything that went wrong in it."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from interop.kafka_artifacts import CACHE

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Page, Request

SCREENSHOTS = CACHE / "screenshots"


@dataclass
class WatchedPage:
    page: Page
    home: str
    complaints: list[str] = field(default_factory=list)
    foreign_requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        # What the broker refuses is said on the page; the browser repeats it here.
        is_refusal = message.text.startswith("Failed to load resource")
        if message.type in ("error", "warning") and not is_refusal:
            self.complaints.append(message.text)

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((self.home, "data:")):
            self.foreign_requests.append(request.url)

    @property
    def host(self) -> str:
        return urlsplit(self.home).netloc

    def go(self, place: str) -> Page:
        """To this page of the console, such as "topics/orders"."""
        self.page.goto(f"{self.home}/#/{place}")
        self.page.locator("main h1").wait_for()
        return self.page

    def keep_picture(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        session = self.page.context.new_cdp_session(self.page)
        shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": 82})
        (SCREENSHOTS / f"{name}.webp").write_bytes(base64.b64decode(shot["data"]))
        session.detach()
