"""Load time of the web console in Debian's Chromium with an empty cache, against a page of one line."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from statistics import median

from bench.report import Row
from bench.rest import BODY, Rest, ottla

ROUNDS = 7
TOPICS = 20
USABLE_WITHIN_MS = 1000
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu")


class _OneLine(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>one line</title><p>one line")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def one_line() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _OneLine)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def rows() -> list[Row]:
    from playwright.sync_api import Browser, sync_playwright

    def painted_ms(browser: Browser, url: str, ready: str) -> tuple[float, float]:
        """From the click to the first paint, and to what `ready` waits for."""
        context = browser.new_context()
        page = context.new_page()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(ready)
        usable = page.evaluate("performance.now()")
        page.wait_for_function(PAINTED)
        first: float = page.evaluate(PAINTED)
        context.close()
        return first, usable

    chromium = which("chromium")
    if chromium is None:
        return [Row(what="the console in a browser", ours="chromium is not installed")]
    with tempfile.TemporaryDirectory() as folder, ottla(Path(folder)) as ports, one_line() as plain:
        rest = Rest(ports.http)
        for number in range(TOPICS):
            rest.ask("POST", "/v1/topics", b'{"name":"topic-%d"}' % number, **BODY)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(painted_ms(browser, f"http://127.0.0.1:{ports.http}/", "main:not([aria-busy]) .card"))
                theirs.append(painted_ms(browser, plain, "p"))
            browser.close()
    first, usable = (median(column) for column in zip(*ours, strict=True))
    plain_first, plain_usable = (median(column) for column in zip(*theirs, strict=True))
    return [
        _row("the console, first paint, against a page of one line", first, plain_first),
        _row("the console, usable, against a page of one line", usable, plain_usable, within_ms=USABLE_WITHIN_MS),
    ]


def _row(what: str, ours_ms: float, theirs_ms: float, *, within_ms: int | None = None) -> Row:
    return Row(
        what=what,
        ours=f"{ours_ms:.0f} ms",
        theirs=f"{theirs_ms:.0f} ms",
        ratio=ours_ms / theirs_ms,
        goal="" if within_ms is None else f"< {within_ms} ms",
        is_reached=None if within_ms is None else ours_ms < within_ms,
    )
