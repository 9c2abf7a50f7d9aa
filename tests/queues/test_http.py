"""Queues over HTTP, without a broker."""

from __future__ import annotations

import asyncio
import base64
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from ottla.core.errors import ConfigError
from ottla.http.queues.config import QueueServerConfig, load_queue_server_config
from ottla.http.queues.server import build_queue_app
from ottla.http.queues.store import open_store
from ottla.queue import Queue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

API = "/api/v1/queues"
MESSAGES = f"{API}/events/consumers/app/messages"
COMMIT = f"{API}/events/consumers/app/commit"


@asynccontextmanager
async def serving(folder: Path, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    config = QueueServerConfig(data_directory=folder, **settings)
    store = open_store(config)
    transport = httpx.ASGITransport(build_queue_app(store, config))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://queues") as client:
            yield client
    finally:
        store.close()


def play(folder: Path, scene: Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def run() -> None:
        async with serving(folder, **settings) as client:
            await scene(client)

    asyncio.run(run())


def values(response: httpx.Response) -> list[Any]:
    assert response.status_code == 200, response.text
    return [message["value"] for message in response.json()["messages"]]


def test_messages_are_redelivered_until_committed(tmp_path: Path) -> None:
    async def scene(http: httpx.AsyncClient) -> None:
        assert (await http.get("/health")).json()["status"] == "ok"
        assert (await http.get(API)).json() == {"queues": []}
        created = await http.post(API, json={"name": "events"})
        state = {"name": "events", "id": 0, "count_pushed": 0, "is_ready": True}
        assert (created.status_code, created.json()) == (201, state)
        assert values(await http.get(MESSAGES, params={"timeout_ms": 0})) == []
        pushed = await http.post(f"{API}/events/messages", json={"messages": [{"value": "a"}, {"value": {"n": 1}}]})
        assert pushed.json() == {"id": 0, "count": 2}
        assert (await http.get(f"{API}/events")).json() == state | {"count_pushed": 2}
        for _ in range(2):
            assert values(await http.get(MESSAGES)) == ["a"]
        for _ in range(2):
            assert values(await http.get(MESSAGES, params={"max_messages": 5})) == ["a", {"n": 1}]
        committed = await http.post(COMMIT)
        assert (committed.status_code, committed.content) == (200, b"")
        assert values(await http.get(MESSAGES, params={"timeout_ms": 0})) == []
        assert (await http.get(f"{API}/events/consumers")).json() == {"consumers": ["app"]}
        assert (await http.get(API)).json() == {"queues": ["events"]}

    play(tmp_path, scene)


def test_a_new_consumer_starts_at_the_earliest_message(tmp_path: Path) -> None:
    for message in ("old", "new"):
        with Queue(tmp_path, "events") as queue:
            queue.push(message)

    async def scene(http: httpx.AsyncClient) -> None:
        assert values(await http.get(MESSAGES, params={"max_messages": 5})) == ["old", "new"]
        late = MESSAGES.replace("app", "late")
        assert values(await http.get(late, params={"start": "latest_part", "max_messages": 5})) == ["new"]

    play(tmp_path, scene)


def test_a_commit_may_name_its_message(tmp_path: Path) -> None:
    async def scene(http: httpx.AsyncClient) -> None:
        await http.post(API, json={"name": "events"})
        await http.post(f"{API}/events/messages", json={"messages": [{"value": one} for one in "abc"]})
        [first] = (await http.get(MESSAGES)).json()["messages"]
        done = {"part": first["part"], "offset": first["offset"]}
        # Another request of the same consumer, given more than the first.
        assert values(await http.get(MESSAGES, params={"max_messages": 5})) == ["a", "b", "c"]
        assert (await http.post(COMMIT, params=done)).status_code == 200
        later = (await http.get(MESSAGES, params={"max_messages": 5})).json()["messages"]
        assert [one["value"] for one in later] == ["b", "c"]
        await http.post(COMMIT, params={"part": later[0]["part"], "offset": later[0]["offset"]})
        # The delayed first commit again: it neither rewinds nor skips.
        assert (await http.post(COMMIT, params=done)).status_code == 200
        assert values(await http.get(MESSAGES, params={"max_messages": 5})) == ["c"]

        assert (await http.post(COMMIT, params={"part": first["part"]})).status_code == 400
        assert (await http.post(COMMIT, params={"part": 0, "offset": 1 << 40})).status_code == 404
        assert values(await http.get(MESSAGES, params={"max_messages": 5})) == ["c"]

    play(tmp_path, scene)


def test_every_kind_of_message_keeps_its_bytes(tmp_path: Path) -> None:
    binary = b"\xff\x00 not JSON"

    async def scene(http: httpx.AsyncClient) -> None:
        push = f"{API}/events/messages"
        await http.post(push, content=binary)
        await http.post(push, content="Привет", headers={"content-type": "text/plain"})
        number = b'{"n": 12345678901234567890.000}'
        await http.post(push, content=number)
        raw = {"raw_bytes": base64.b64encode(binary).decode()}
        await http.post(push, json={"messages": [raw, {"value": "an object", "msg_type": "object"}, {"value": "a"}]})
        answer = await http.get(MESSAGES, params={"max_messages": 10})
        assert [(one["msg_type"], one["value"], one.get("raw_bytes")) for one in answer.json()["messages"]] == [
            ("object", "[Binary Data]", base64.b64encode(binary).decode()),
            ("string", "Привет", None),
            ("object", {"n": 12345678901234567890.0}, None),
            ("object", "[Binary Data]", base64.b64encode(binary).decode()),
            ("object", "an object", None),
            ("string", "a", None),
        ]
        assert number in answer.content
        assert [one["offset"] for one in answer.json()["messages"]][:2] == [0, 25 + len(binary)]

    Queue(tmp_path, "events").close()
    play(tmp_path, scene)


def test_a_long_poll_ends_when_this_or_another_process_pushes(tmp_path: Path) -> None:
    async def scene(http: httpx.AsyncClient) -> None:
        await http.post(API, json={"name": "events"})
        waiting = asyncio.create_task(http.get(MESSAGES, params={"timeout_ms": 20_000}))
        while not (await http.get(f"{API}/events/consumers")).json()["consumers"]:
            pass
        await http.post(f"{API}/events/messages", content=b'"here"')
        assert values(await waiting) == ["here"]
        with Queue(tmp_path, "other") as queue:
            url = f"{API}/other/consumers/app/messages"
            waiting = asyncio.create_task(http.get(url, params={"timeout_ms": 20_000}))
            while not (await http.get(f"{API}/other/consumers")).json()["consumers"]:
                pass
            queue.push("there")
            assert values(await waiting) == ["there"]

    play(tmp_path, scene)


def test_two_requests_for_one_consumer_take_turns(tmp_path: Path) -> None:
    async def scene(http: httpx.AsyncClient) -> None:
        await http.post(API, json={"name": "events"})
        await http.post(f"{API}/events/messages", json={"messages": [{"value": "a"}]})
        answers = await asyncio.gather(*(http.get(MESSAGES) for _ in range(10)))
        assert [values(answer) for answer in answers] == [["a"]] * 10

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("GET", f"{API}/nothing", None, 404),
        ("GET", f"{API}/nothing/consumers", None, 404),
        ("GET", f"{API}/nothing/consumers/app/messages", None, 404),
        ("POST", f"{API}/nothing/consumers/app/commit", None, 404),
        ("POST", f"{API}/nothing/messages", b"x", 404),
        ("DELETE", f"{API}/nothing", None, 404),
        ("GET", "/api/v1/nothing", None, 404),
        ("GET", f"{API}/events/nothing", None, 404),
        ("POST", COMMIT, None, 404),
        ("GET", f"{API}/%2e%2e%2fevents", None, 400),
        ("GET", f"{API}/%ff", None, 400),
        ("GET", f"{API}/a%2fb/consumers", None, 400),
        ("GET", f"{API}/events/consumers/a%3bb/messages", None, 400),
        ("GET", f"{MESSAGES}?max_messages=0", None, 400),
        ("GET", f"{MESSAGES}?max_messages=10001", None, 400),
        ("GET", f"{MESSAGES}?timeout_ms=-1", None, 400),
        ("GET", f"{MESSAGES}?timeout_ms=soon", None, 400),
        ("GET", f"{MESSAGES}?start=now", None, 400),
        ("POST", API, b'{"name": "a/b"}', 400),
        ("POST", API, b'{"name": 7}', 400),
        ("POST", API, b"{", 400),
        ("POST", API, b'{"name": "events"}', 409),
        ("POST", API, b'{"name": "', 400),
        ("PUT", API, b"", 405),
        ("POST", f"{API}/events/messages", b"x" * 1001, 413),
        ("POST", f"{API}/held/messages", b"x", 409),
        ("DELETE", f"{API}/held", None, 409),
    ],
)
def test_errors_have_a_reason(tmp_path: Path, method: str, path: str, content: bytes | None, status: int) -> None:
    async def scene(http: httpx.AsyncClient) -> None:
        answer = await http.request(method, path, content=content)
        assert answer.status_code == status, answer.text
        assert answer.json()["error"]

    Queue(tmp_path, "events").close()
    with Queue(tmp_path, "held"):
        play(tmp_path, scene, max_message_size=1000)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"messages": 1}',
        b'{"messages": [{}]}',
        b'{"messages": [{"value": 1, "msg_type": "string"}]}',
        b'{"messages": [{"raw_bytes": "?"}]}',
        b'{"messages": [{"value": "a", "key": 1}]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_body_without_messages_pushes_none(tmp_path: Path, body: bytes) -> None:
    async def scene(http: httpx.AsyncClient) -> None:
        await http.post(API, json={"name": "events"})
        headers = {"content-type": "application/json"}
        answer = await http.post(f"{API}/events/messages", content=body, headers=headers)
        assert answer.status_code == 400
        assert (await http.get(f"{API}/events")).json()["count_pushed"] == 0

    play(tmp_path, scene)


def test_a_queue_is_removed_with_all_its_files(tmp_path: Path) -> None:
    async def scene(http: httpx.AsyncClient) -> None:
        await http.post(API, json={"name": "events"})
        await http.post(f"{API}/events/messages", content=b"x")
        await http.get(MESSAGES)
        assert (await http.delete(f"{API}/events")).status_code == 200
        assert os.listdir(tmp_path) == []
        await http.post(API, json={"name": "events"})
        assert values(await http.get(MESSAGES, params={"timeout_ms": 0})) == []

    play(tmp_path, scene)


def test_without_a_password_only_health_is_served(tmp_path: Path) -> None:
    async def scene(http: httpx.AsyncClient) -> None:
        assert (await http.get("/health")).status_code == 200
        for headers in ({}, {"authorization": "Bearer x"}, {"authorization": "Basic ???"}):
            refused = await http.get(API, headers=headers)
            assert (refused.status_code, refused.json()) == (401, {"error": "Authentication required"})
            assert refused.headers["www-authenticate"].startswith("Basic")
        for name, password, status in (
            ("ann", "sécret", 200),
            ("ann", "no", 401),
            ("bob", "sécret", 401),
            ("", "", 401),
        ):
            assert (await http.get(API, auth=(name, password))).status_code == status

    play(tmp_path, scene, users={"ann": "sécret"})


def test_another_origin_cannot_write(tmp_path: Path) -> None:
    async def scene(http: httpx.AsyncClient) -> None:
        for origin, status in (("http://evil.example", 403), ("http://queues", 201)):
            answer = await http.post(API, json={"name": "events"}, headers={"origin": origin})
            assert answer.status_code == status

    play(tmp_path, scene)


def test_flags_override_the_file_which_overrides_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "v-queue-server.toml"
    file.write_text(
        'bind_address = "0.0.0.0:8080"\ndata_directory = "/data"\nlog_level = "warn"\nmax_message_size = 10485760\n'
        'default_batch_size = 100\nauth_enabled = true\n[users]\nadmin = "secret"\n'
    )
    config = load_queue_server_config(file, {})
    assert (config.address, str(config.data_directory), config.needs_password) == (("0.0.0.0", 8080), "/data", True)  # noqa: S104
    assert (config.default_batch_size, config.log_level, config.part_bytes) == (100, "warn", 1 << 30)
    config = load_queue_server_config(file, {"bind_address": "[::1]:0", "auth_enabled": False})
    assert (config.address, config.needs_password, config.default_batch_size) == (("::1", 0), False, 100)
    assert "secret" not in repr(config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("auth_enabled = true", "auth_enabled needs at least one user"),
        ("bind = 1", "unknown setting bind"),
        ('bind_address = "9093"', "bind_address must be HOST:PORT"),
        ("max_message_size = 0", "max_message_size must be 1 to"),
        ('[users]\na = ["secret"]', "users: expected a table of names and passwords"),
        ("=", "not valid TOML"),
    ],
)
def test_an_invalid_file_is_refused_with_the_reason(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "queues.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as refused:
        load_queue_server_config(file, {})
    assert "secret" not in str(refused.value)
