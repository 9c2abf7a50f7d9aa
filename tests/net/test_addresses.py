"""One port on every address of a host."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ottla.core.ids import Address
from ottla.net import binding

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Run = Callable[[Coroutine[Any, Any, None]], None]

HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
"""More addresses than a dual-stack name has; available on every machine."""


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    """A name with all of these addresses."""
    real = socket.getaddrinfo

    def getaddrinfo(host: bytes, port: int, **options: Any) -> list[Any]:
        hosts = [each.encode() for each in HOSTS] if host == b"many.example" else [host]
        return [found for each in hosts for found in real(each, port, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return "many.example"


def addresses(bound: list[socket.socket]) -> list[tuple[str, int]]:
    return [one.getsockname() for one in bound]


def close(bound: list[socket.socket]) -> None:
    for one in bound:
        one.close()


def test_a_free_port_is_the_same_on_all_addresses(name: str) -> None:
    bound = binding.bind(name, 0)
    assert addresses(bound) == [(host, bound[0].getsockname()[1]) for host in HOSTS]
    close(bound)


def test_a_port_that_is_taken_on_another_address_is_not_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[socket.socket] = []
    real = socket.socket.listen

    def listen_and_take_the_next(one: socket.socket, *backlog: int) -> None:
        real(one, *backlog)
        if not taken:
            taken.append(other := socket.socket())
            other.bind((HOSTS[1], one.getsockname()[1]))
            real(other)

    monkeypatch.setattr(socket.socket, "listen", listen_and_take_the_next)
    bound = binding.bind(name, 0)
    assert len({one.getsockname()[1] for one in (*bound, *taken)}) == 2
    assert [host for host, _ in addresses(bound)] == HOSTS
    close([*bound, *taken])


def test_the_search_for_a_port_is_limited(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def always_too_late(_: object) -> list[socket.socket]:
        raise OSError(98, "taken")

    monkeypatch.setattr(binding, "_bind_all", always_too_late)
    with pytest.raises(OSError, match="no port is free on all addresses"):
        binding.bind(name, 0)


def test_an_explicit_port_is_used_or_refused(name: str) -> None:
    with closing(socket.create_server(("127.0.0.2", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            binding.bind(name, port)
    bound = binding.bind(name, port)
    assert {one.getsockname()[1] for one in bound} == {port}
    close(bound)


def test_an_ip_address_is_bound_without_a_thread(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.run_in_executor", None)

    async def scenario() -> None:
        for host in ("127.0.0.1", "0.0.0.0"):  # noqa: S104 - closed at once
            close(await binding.bind_without_blocking(host, 0))

    run(scenario())


def test_a_name_is_resolved_in_a_thread(run: Run) -> None:
    async def scenario() -> None:
        bound = await binding.bind_without_blocking("localhost", 0)
        assert bound
        close(bound)

    run(scenario())


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("127.0.0.1", 9092)) == "127.0.0.1:9092"
