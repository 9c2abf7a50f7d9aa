from __future__ import annotations

import pytest

from ottla.net.config import NetConfig, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [("kafka.example:9092", ("kafka.example", 9092)), ("[::1]:1", ("::1", 1)), ("10.0.0.1:65535", ("10.0.0.1", 65535))],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["host", "host:", ":9092", "host:0", "host:65536", "host:port", "host:-1", "host:٣"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="advertised must be an address such as"):
        NetConfig(advertised=text)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_has_sixteen_bits(port: int) -> None:
    with pytest.raises(ValueError, match="port must be between 0 and 65535"):
        NetConfig(port=port)


@pytest.mark.parametrize(
    "name",
    [
        "max_frame_bytes",
        "max_connections",
        "max_connections_per_address",
        "max_idle_ms",
        "max_stalled_ms",
        "max_held_bytes",
    ],
)
def test_a_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        NetConfig(**{name: 0})
