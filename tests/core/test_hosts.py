"""Which hosts can be reached from this machine only."""

from __future__ import annotations

import pytest

from ottla.core.hosts import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_a_loopback_host_is_recognized(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["localhost.evil.example", "127.evil.example", "127.0.0.1.evil.example", "::10", "::", "10.0.0.1", ""]
)
def test_a_host_that_only_starts_like_a_loopback_host_is_not_one(host: str) -> None:
    assert not is_loopback(host)
