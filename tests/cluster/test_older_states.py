"""A rolling upgrade: partition states that were written by a release without eligible replicas (KIP-966)."""

from __future__ import annotations

import json

from ottla.cluster.election import settle, with_isr
from ottla.cluster.nodes import partition_data, read_partition
from ottla.cluster.state import NO_NODE, PartitionState

from .making import brokers, partition

_THERE = {1: "a", 2: "b", 3: "c"}
_RECORDED = (
    b'{"replicas":[1,2,3],"leader":1,"leader_epoch":4,"isr":[1],"folders":[[1,"a"],[2,"b"],[3,"c"]]}',
    b'{"replicas":[1,2,3],"leader":1,"leader_epoch":4,"isr":[1]}',
)
"""As such releases write them; the second one without data folders either."""
_KNOWN = ("replicas", "leader", "leader_epoch", "isr", "folders")


def _read(data: bytes) -> PartitionState:
    return read_partition(partition((1, 2, 3)).key, "t", data, 7, min_isr=2)


def test_only_the_isr_of_a_state_without_eligible_replicas_leads() -> None:
    for recorded in _RECORDED:
        state = _read(recorded)
        assert state.eligible == ()

        left = settle(state, brokers(2, 3, folders=_THERE))

        assert (left.leader, left.isr, left.eligible) == (NO_NODE, (1,), ())


def test_an_older_controller_drops_eligible_replicas_with_its_next_change_and_then_only_the_isr_leads() -> None:
    alone = partition((1, 2, 3), isr=(1,), eligible=(2,), min_isr=2, folders=tuple(_THERE.items()))
    told = json.loads(partition_data(alone))
    older = {name: told[name] for name in _KNOWN} | {"leader": NO_NODE, "leader_epoch": 5}

    state = _read(json.dumps(older).encode())

    assert settle(state, brokers(2, 3, folders=_THERE)).leader == NO_NODE
    assert settle(state, brokers(1, 2, folders=_THERE)).leader == 1


def test_members_that_leave_after_the_upgrade_are_eligible() -> None:
    state = _read(_RECORDED[0].replace(b'"isr":[1]', b'"isr":[1,2]'))

    shrunk = with_isr(state, (1,), brokers(1, folders=_THERE))

    assert shrunk.eligible == (2,)
    assert _read(partition_data(shrunk)).eligible == (2,)
