"""Pictures of every page of the console: desktop and phone, light and dark, few rights, 10,000 partitions.

python -m interop.console.screenshots FOLDER [NAME ...]

With names only pictures whose names begin with one of them are made.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import httpx
from playwright.sync_api import sync_playwright
from tests.security.securing import PASSWORDS, secured
from tests.security.test_rest import served

from interop.console.conftest import DESKTOP, FLAGS
from interop.console.demo_data import fill
from interop.console.test_access import FEW_RIGHTS, log_in
from interop.console.test_pages import PAGES, PHONE
from interop.ottla_server import ottla_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

LOOKS: dict[str, dict[str, Any]] = {
    "desktop-light": {"viewport": DESKTOP, "color_scheme": "light"},
    "desktop-dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone-light": {"viewport": PHONE, "color_scheme": "light", "has_touch": True},
    "phone-dark": {"viewport": PHONE, "color_scheme": "dark", "has_touch": True},
}
PARTITIONS = 10_000
MANY = {
    "overview": ("", "Largest topics"),
    "topics": ("topics", "wide"),
    "partitions": ("topics/wide/partitions", "First offset"),
    "messages": ("topics/wide", "message"),
}
PATIENCE_MS = 60_000
SETTLING_MS = 1_200
"""Charts and lists follow after the first content."""


class Camera:
    def __init__(self, browser: Browser, folder: Path, wanted: tuple[str, ...]) -> None:
        self._browser = browser
        self._folder = folder
        self._wanted = wanted

    def wants(self, name: str) -> bool:
        return not self._wanted or name.startswith(self._wanted)

    @contextmanager
    def page(self, look: str) -> Iterator[Page]:
        context = self._browser.new_context(**LOOKS[look])
        context.set_default_timeout(PATIENCE_MS)
        yield context.new_page()
        context.close()

    def take(self, page: Page, home: str, place: str, content: str, name: str) -> None:
        if not self.wants(name):
            return
        page.goto(f"{home}/#/{place}")
        page.locator("main").get_by_text(content).first.wait_for(state="attached")
        page.wait_for_timeout(SETTLING_MS)
        page.screenshot(path=self._folder / f"{name}.png")


def ordinary(camera: Camera, folder: Path) -> None:
    with ottla_server(folder, serves_http=True) as server:
        home = f"http://{server.http}"
        with httpx.Client(base_url=home, timeout=60) as http:
            fill(http, server.bootstrap)
        for look in LOOKS:
            with camera.page(look) as page:
                for name, (place, content) in PAGES.items():
                    camera.take(page, home, place, content, f"{name}-{look}")


def few_rights(camera: Camera, folder: Path) -> None:
    with secured(folder, acls=True, super_users=("User:admin",)) as broker, served(broker) as http:
        with http.by("admin") as admin:
            admin.post("/v1/topics", json={"name": "few-seen"}).raise_for_status()
            right = {"principal": "User:bob", "resource_type": "TOPIC", "resource_name": "few-seen"}
            admin.post("/v1/acls", json=right | {"operation": "DESCRIBE"}).raise_for_status()
        for user, pages in (("bob", FEW_RIGHTS | {"access": "User:bob"}), ("admin", {"access": "User:admin"})):
            for look in ("desktop-light", "phone-dark"):
                with camera.page(look) as page:
                    page.goto(http.url)
                    log_in(page, user, PASSWORDS[user])
                    for place, content in pages.items():
                        name = place.replace("/", "-") or "overview"
                        camera.take(page, http.url, place, content, f"rights-{user}-{name}-{look}")


def many_partitions(camera: Camera, folder: Path) -> None:
    with ottla_server(folder, serves_http=True) as server:
        home = f"http://{server.http}"
        with httpx.Client(base_url=home, timeout=300) as http:
            http.post("/v1/topics", json={"name": "wide", "partitions": PARTITIONS}).raise_for_status()
            messages = [{"value": f"number {number}", "partition": number} for number in range(0, PARTITIONS, 500)]
            http.post("/v1/topics/wide/messages", json={"messages": messages}).raise_for_status()
        for look in ("desktop-light", "phone-dark"):
            with camera.page(look) as page:
                for name, (place, content) in MANY.items():
                    camera.take(page, home, place, content, f"many-{name}-{look}")


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    chromium = which("chromium")
    assert chromium is not None
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as scratch:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        camera = Camera(browser, folder, tuple(arguments[1:]))
        for number, make in enumerate((ordinary, few_rights, many_partitions)):
            (data := Path(scratch) / str(number)).mkdir()
            make(camera, data)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
