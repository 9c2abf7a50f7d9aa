"""The registration of a node in the catalog, with a connection that breaks during the start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ottla.cluster.builtin.tree import Tree
from ottla.cluster.membership import register
from ottla.cluster.nodes import BROKERS, broker_path, read_broker, registration_path
from ottla.cluster.operations import Create, Disconnected
from ottla.cluster.registration import fence
from ottla.cluster.state import BrokerInfo
from ottla.core.ids import Address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.cluster.operations import Node, Operation

ME = BrokerInfo(5, {"PLAINTEXT": Address("127.0.0.1", 9092)}, folder="f")


class _Store:
    """The catalog of one session. The response to a request about `lost_path` is lost, once."""

    session_id = 7
    timeout_s = 1.0
    lost_path = ""

    def __init__(self) -> None:
        self._tree = Tree({}, 0)
        parts = BROKERS.strip("/").split("/")
        for depth in range(len(parts)):
            self.commit([Create("/" + "/".join(parts[: depth + 1]))])

    def read(self, path: str) -> Node | None:
        return self._tree.get(path)

    def commit(self, operations: Sequence[Operation]) -> None:
        self._tree.apply(self._tree.plan(operations, self.session_id))
        if self.lost_path in {operation.path for operation in operations}:
            self.lost_path = ""
            raise Disconnected("no answer")

    @property
    def registered(self) -> BrokerInfo:
        known = self.read(broker_path(ME.id))
        assert known is not None
        return read_broker(ME.id, known.data, known.created, is_draining=False)


class _Mirror:
    def refresh(self, _paths: Any, _timeout_s: float) -> None:
        """Nothing is copied here."""


def _join(store: Any) -> None:
    register(store, _Mirror(), replace(ME, registration=fence(store, ME.id)), 1.0)  # type: ignore[arg-type]


def test_a_start_repeated_after_a_lost_response_registers_with_the_number_of_its_last_attempt() -> None:
    """With the number of the first one, no leader could ever add the node to an ISR."""
    store = _Store()
    store.lost_path = broker_path(ME.id)
    with pytest.raises(Disconnected):
        _join(store)

    _join(store)

    number = store.read(registration_path(ME.id))
    assert number is not None
    assert store.registered.registration == number.version


def test_a_registration_that_is_in_the_catalog_already_is_not_written_again() -> None:
    store: Any = _Store()
    me = replace(ME, registration=fence(store, ME.id))
    register(store, _Mirror(), me, 1.0)  # type: ignore[arg-type]
    before = store.read(broker_path(ME.id))

    register(store, _Mirror(), me, 1.0)  # type: ignore[arg-type]

    assert store.read(broker_path(ME.id)) == before
