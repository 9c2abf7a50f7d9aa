"""Requests from pages of other origins."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ottla.broker.settings import Settings
from ottla.http.config import HttpConfig
from ottla.http.framework.guard import Guard
from ottla.http.framework.stats import HttpStats
from ottla.net.config import NetConfig

from .serving import HttpBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

FRIEND = "https://app.example"
STRANGER = "https://evil.example"


@pytest.fixture(scope="module")
def friendly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    with HttpBroker(tmp_path_factory.mktemp("broker"), HttpConfig(port=0, cors_origins=(FRIEND,))) as served:
        yield served


def test_a_page_of_another_origin_cannot_write(http: httpx.Client, name: str) -> None:
    body = b'{"messages":[{"value":"x"}]}'
    for headers in ({"origin": STRANGER}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        refused = http.post(
            f"/v1/topics/{name}/messages", content=body, headers=headers | {"content-type": "text/plain"}
        )
        assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")
        assert "cors_origins" in refused.json()["hint"]
    assert http.get(f"/v1/topics/{name}").status_code == 404


def test_a_page_of_another_origin_cannot_read(http: httpx.Client) -> None:
    answer = http.get("/v1/topics", headers={"origin": STRANGER})
    assert "access-control-allow-origin" not in answer.headers


REBOUND = {"host": "evil.example:8080", "origin": "http://evil.example:8080"}


def test_dns_rebinding_is_refused(http: httpx.Client, name: str) -> None:
    for refused in (
        http.get("/v1/topics", headers=REBOUND),
        http.post("/v1/topics", json={"name": name}, headers=REBOUND),
    ):
        assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")
        assert "evil.example" in refused.json()["detail"]
    assert http.get(f"/v1/topics/{name}").status_code == 404


@pytest.mark.parametrize(
    "host", ["localhost:8080", "127.0.0.1", "[::1]:8080", "kafka:8080", "box.local", "a.localhost"]
)
def test_local_names_and_addresses_are_accepted_as_host(http: httpx.Client, host: str) -> None:
    assert http.get("/v1/topics", headers={"host": host}).status_code == 200


def answered(server: str, host: str, hosts: tuple[str, ...] | None = ()) -> int:
    """The status with which a request for this host is answered at this address."""
    statuses = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> Any:
        return {"type": "http.request"}

    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": b"/v1/topics",
        "headers": [(b"host", host.encode())],
        "server": (server, 8080),
    }
    asyncio.run(Guard(app, HttpStats(), hosts=hosts)(scope, receive, send))
    return int(statuses[0])


@pytest.mark.parametrize(
    "server", ["127.0.0.1", "10.0.0.5", "172.17.0.2", "192.168.1.2", "100.64.0.1", "169.254.1.1", "::1", "fd00::1"]
)
def test_dns_rebinding_to_a_private_address_is_refused(server: str) -> None:
    assert answered(server, "evil.example:8080") == 403
    assert answered(server, "localhost.evil.example") == 403
    assert answered(server, server if "." in server else f"[{server}]:8080") == 200
    assert answered(server, "kafka.example:8080", ("kafka.example",)) == 200
    assert answered(server, "kafka.example", ("*",)) == 200
    assert answered(server, "kafka.example", None) == 200


def test_at_a_public_address_any_host_name_is_accepted() -> None:
    assert answered("8.8.8.8", "kafka.example") == 200


def test_the_advertised_name_is_accepted_as_host(tmp_path: Path) -> None:
    settings = Settings(net=NetConfig(port=0, advertised="kafka.example:9092"))
    with HttpBroker(tmp_path, settings=settings) as told:
        assert told.client.get("/v1/topics", headers={"host": "kafka.example:8080"}).status_code == 200
        assert told.client.get("/v1/topics", headers={"host": "other.example"}).status_code == 403


def test_a_configured_host_is_accepted(friendly: HttpBroker) -> None:
    assert friendly.client.get("/v1/topics", headers={"host": "app.example"}).status_code == 200


def test_a_page_of_the_same_origin_may_write(served: HttpBroker, http: httpx.Client, name: str) -> None:
    written = http.post("/v1/topics", json={"name": name}, headers={"origin": served.url})
    assert written.status_code == 201


def test_a_configured_origin_may_read_and_write_and_others_may_not(friendly: HttpBroker, name: str) -> None:
    http = friendly.client
    written = http.post("/v1/topics", json={"name": name}, headers={"origin": FRIEND})
    assert written.status_code == 201
    assert written.headers["access-control-allow-origin"] == FRIEND
    asked = {
        "origin": FRIEND,
        "access-control-request-method": "PATCH",
        "access-control-request-headers": "content-type",
    }
    preflight = http.options(f"/v1/topics/{name}/configs", headers=asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == FRIEND
    refused = http.delete(f"/v1/topics/{name}", headers={"origin": STRANGER})
    assert refused.status_code == 403
    assert http.get(f"/v1/topics/{name}").status_code == 200


def test_every_origin_may_write_if_all_are_allowed(tmp_path_factory: pytest.TempPathFactory) -> None:
    config = HttpConfig(port=0, cors_origins=("*",))
    with HttpBroker(tmp_path_factory.mktemp("open"), config) as served:
        written = served.client.post("/v1/topics", json={"name": "t"}, headers={"origin": STRANGER})
        assert (written.status_code, written.headers["access-control-allow-origin"]) == (201, "*")
