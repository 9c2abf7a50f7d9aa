"""Shard leases: pure rules."""

from __future__ import annotations

import pytest

from ottla.dmqp.leases import Leases, TooManyConsumers


def test_shards_are_distributed_evenly() -> None:
    leases = Leases(lease_ms=100)
    assert leases.register("ann", shards=5, now_ms=0) == (0, 1, 2, 3, 4)
    assert leases.register("bob", shards=5, now_ms=0) == (1, 3)
    assert leases.register("ann", shards=5, now_ms=0) == (0, 2, 4)


def test_there_are_never_more_consumers_than_shards() -> None:
    leases = Leases(lease_ms=100)
    leases.register("ann", shards=2, now_ms=0)
    leases.register("bob", shards=2, now_ms=0)
    with pytest.raises(TooManyConsumers):
        leases.register("eve", shards=2, now_ms=99)
    assert leases.register("ann", shards=2, now_ms=99) == (0,)


def test_a_lease_that_is_not_renewed_expires() -> None:
    leases = Leases(lease_ms=100)
    leases.register("ann", shards=1, now_ms=0)
    assert leases.register("eve", shards=1, now_ms=100) == (0,)
    assert leases.shares(1, now_ms=100) == {"eve": (0,)}
    assert leases.shares(1, now_ms=200) == {}


def test_a_released_lease_is_free_at_once() -> None:
    leases = Leases(lease_ms=100)
    leases.register("ann", shards=1, now_ms=0)
    leases.unregister("ann")
    assert leases.register("eve", shards=1, now_ms=0) == (0,)
