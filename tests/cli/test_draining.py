"""Draining nodes: where their partitions go."""

from __future__ import annotations

import pytest

from ottla.cli.clusters.draining import plan
from ottla.client.view import BrokerAddress, PartitionView
from ottla.core.errors import OttlaError
from ottla.core.ids import TopicPartition


def brokers(*ids: int) -> dict[int, BrokerAddress]:
    return {each: BrokerAddress(each, "h", each) for each in ids}


def partitions(*replicas: tuple[int, ...]) -> dict[TopicPartition, PartitionView]:
    return {
        TopicPartition("t", index): PartitionView(leader=nodes[0], leader_epoch=0, replicas=nodes, isr=nodes)
        for index, nodes in enumerate(replicas)
    }


def test_nodes_drained_together_do_not_get_each_others_partitions() -> None:
    moves = plan(partitions((1,), (2,), (0,), (1, 2)), brokers(0, 1, 2, 3), [1, 2])

    assert moves == {
        TopicPartition("t", 0): (3,),
        TopicPartition("t", 1): (0,),
        TopicPartition("t", 3): (3, 0),
    }


def test_draining_is_refused_if_too_few_nodes_remain() -> None:
    with pytest.raises(OttlaError, match="t-0 is on every other node already"):
        plan(partitions((1, 0)), brokers(0, 1), [1])
