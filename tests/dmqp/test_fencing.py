"""The producer epochs that fence nodes which served a topic before."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ottla.cluster.operations import Node
from ottla.core.errors import NotLeaderOrFollower
from ottla.dmqp.fencing import LAST_EPOCH, Producer, PushFence, successor

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.core.ids import TopicPartition


class _Catalog:
    """As `ExposedShards`, of one topic."""

    def __init__(self) -> None:
        self.node: Node | None = None

    def producer(self, _topic: str) -> Node | None:
        return self.node

    def put_producer(self, _topic: str, data: bytes, version: int) -> bool:
        if version != (-1 if self.node is None else self.node.version):
            return False
        self.node = Node(data, version + 1, 1)
        return True


class _Cluster:
    async def work(self, what: Callable[[], Any]) -> Any:
        return what()


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Producer, list[int]]]:
    """The markers that were written, and the shards that got them."""
    written: list[tuple[Producer, list[int]]] = []

    async def deliver(_self: Any, places: set[TopicPartition], producer: Producer, _marker: Any) -> None:
        written.append((producer, sorted(at.partition for at in places)))

    monkeypatch.setattr("ottla.dmqp.fencing.MarkerDelivery.deliver", deliver)
    return written


def _fence(catalog: _Catalog, superseded: list[str], new_id: int = 40) -> PushFence:
    broker: Any = SimpleNamespace(producer_ids=SimpleNamespace(next=lambda: new_id))
    return PushFence(broker, _Cluster(), catalog, "jobs", lambda: superseded.append("jobs"))  # type: ignore[arg-type]


def test_the_next_server_has_the_next_epoch_and_another_id_after_the_last_one() -> None:
    assert successor(None, lambda: 7) == Producer(7, 0)
    assert successor(Producer(7, 0), lambda: 8) == Producer(7, 1)
    assert successor(Producer(7, LAST_EPOCH - 2), lambda: 8) == Producer(7, LAST_EPOCH - 1)
    assert successor(Producer(7, LAST_EPOCH - 1), lambda: 8) == Producer(8, 0)


def test_each_server_marks_all_shards_with_a_separate_epoch(marked: list[tuple[Producer, list[int]]]) -> None:
    catalog = _Catalog()
    first = asyncio.run(_fence(catalog, []).take_over([0, 1]))
    second = asyncio.run(_fence(catalog, []).take_over([0, 1]))

    assert (first, second) == (Producer(40, 0), Producer(40, 1))
    assert marked == [(first, [0, 1]), (second, [0, 1])]


def test_a_server_that_was_superseded_cannot_fence_its_successor(marked: list[tuple[Producer, list[int]]]) -> None:
    catalog, superseded = _Catalog(), list[str]()
    old = _fence(catalog, superseded)
    asyncio.run(old.take_over([0, 1]))
    new = asyncio.run(_fence(catalog, []).take_over([0, 1]))

    with pytest.raises(NotLeaderOrFollower):
        asyncio.run(old.renew(1))

    assert superseded == ["jobs"]
    assert marked[-1] == (new, [0, 1])


def test_a_shard_gets_another_epoch_after_a_push_with_an_unknown_outcome(
    marked: list[tuple[Producer, list[int]]],
) -> None:
    fence = _fence(_Catalog(), [])
    asyncio.run(fence.take_over([0, 1]))

    assert asyncio.run(fence.renew(1)) == Producer(40, 1)
    assert marked[-1] == (Producer(40, 1), [1])


def test_after_the_last_epoch_the_previous_producer_id_is_fenced_for_good(
    marked: list[tuple[Producer, list[int]]],
) -> None:
    catalog = _Catalog()
    catalog.node = Node(b"[7, %d]" % (LAST_EPOCH - 1), 3, 1)

    assert asyncio.run(_fence(catalog, []).take_over([0])) == Producer(40, 0)

    assert marked == [(Producer(7, LAST_EPOCH), [0]), (Producer(40, 0), [0])]
