"""The console's files: served from the package, cached immutably by name, with a strict content security policy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla.http

if TYPE_CHECKING:
    import httpx

_CONSOLE = Path(ottla.http.__file__).parent / "console"


def _files(http: httpx.Client) -> list[str]:
    return re.findall(r'(?:href|src)="(console/[^"]+)"', http.get("/").text)


def test_the_page_is_served_at_the_root_and_always_revalidated(http: httpx.Client) -> None:
    page = http.get("/")

    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    again = http.get("/", headers={"if-none-match": page.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""


def test_every_file_of_the_page_exists_and_is_cached_immutably(http: httpx.Client) -> None:
    files = _files(http)

    assert len(files) > 10
    for name in files:
        answer = http.get(f"/{name}")
        assert answer.status_code == 200, name
        assert "immutable" in answer.headers["cache-control"]


def test_every_imported_module_exists(http: httpx.Client) -> None:
    to_read = [name for name in _files(http) if name.endswith("/main.js")]
    for name in to_read:
        source = http.get(f"/{name}")
        assert source.status_code == 200, name
        assert source.headers["content-type"] == "text/javascript; charset=utf-8"
        for imported in re.findall(r'(?:from|import\() ?"(\.[^"]+)"', source.text):
            path = str(source.url.join(imported).path).removeprefix("/")
            if path not in to_read:
                to_read.append(path)
    assert len(to_read) > 30


@pytest.mark.parametrize("path", ["/", "/console/favicon.svg"])
def test_only_this_hosts_scripts_run_and_nothing_may_frame_the_page(http: httpx.Client, path: str) -> None:
    found = path if path == "/" else "/" + next(name for name in _files(http) if name.endswith("favicon.svg"))
    answer = http.get(found)

    policy = answer.headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["", "nothing.js", "../pages.py", "..%2fpages.py", "%2e%2e/%2e%2e/app.py"])
def test_no_other_file_is_served(http: httpx.Client, name: str) -> None:
    digest = _files(http)[0].split("/")[1]

    answer = http.get(f"/console/{digest}/{name}")

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_files_of_another_release_are_refused_with_advice(http: httpx.Client) -> None:
    answer = http.get("/console/0000000000000000/main.js")

    assert answer.status_code == 404
    assert "Reload" in answer.json()["hint"]


def test_the_console_loads_nothing_from_other_hosts(http: httpx.Client) -> None:
    for name in _files(http):
        links = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]+", http.get(f"/{name}").text))
        assert links <= {"http://www.w3.org"}, name


def test_modules_are_small_and_make_no_markup_of_text() -> None:
    modules = [*_CONSOLE.rglob("*.js"), *_CONSOLE.rglob("*.css")]

    assert len(modules) > 40
    for module in modules:
        text = module.read_text()
        assert text.count("\n") <= 250, module
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), module


def test_totals_grow_with_writes(http: httpx.Client, topic: str) -> None:
    before = http.get("/v1/totals").json()
    http.post(f"/v1/topics/{topic}/messages", json={"messages": [{"value": "a"}, {"value": "b"}]})
    after = http.get("/v1/totals").json()

    assert after["messages"] == before["messages"] + 2
    assert after["size_bytes"] > before["size_bytes"]
    assert after["time_ms"] >= before["time_ms"]
    assert after["offline_partitions"] == []
