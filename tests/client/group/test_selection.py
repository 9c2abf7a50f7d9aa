"""The subscription of a member, and the matching topics."""

from __future__ import annotations

import pytest

from ottla.client.group.assignors.subjects import Member
from ottla.client.group.selection import Selection, layout, wanted_by
from ottla.client.view import BrokerAddress, ClusterView, PartitionView, TopicView
from ottla.core.errors import ErrorCode


def _topic(name: str, *replicas: tuple[int, ...], is_internal: bool = False) -> TopicView:
    partitions = {index: PartitionView(nodes[0], 0, nodes, nodes) for index, nodes in enumerate(replicas)}
    error = ErrorCode.NONE if replicas else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return TopicView(name, bytes(16), is_internal, error, partitions)


def _view(*topics: TopicView) -> ClusterView:
    brokers = {
        1: BrokerAddress(1, "a", 1, "rack-a"),
        2: BrokerAddress(2, "b", 1, "rack-b"),
        3: BrokerAddress(3, "c", 1),
    }
    return ClusterView("c", 1, brokers, {topic.name: topic for topic in topics})


VIEW = _view(
    _topic("orders-eu", (1, 2), (2,)), _topic("orders-us", (3,)), _topic("orders-gone"), _topic("_orders", (1,)),
    _topic("orders-internal", (1,), is_internal=True),
)  # fmt: skip


def test_named_topics_are_subscribed_even_before_they_exist() -> None:
    selection = Selection(["orders-eu", "later"])
    assert selection.named == selection.topics(VIEW) == {"orders-eu", "later"}
    assert selection.wants("later")
    assert not selection.wants("orders-us")


def test_a_pattern_must_match_the_whole_topic_name() -> None:
    selection = Selection(pattern="orders-.*")
    assert selection.named is None
    assert selection.topics(VIEW) == {"orders-eu", "orders-us"}
    assert selection.wants("orders-new")
    assert not selection.wants("_orders-new")


def test_topics_and_a_pattern_exclude_each_other() -> None:
    for topics, pattern in [(["t"], "t.*"), ([], None)]:
        with pytest.raises(ValueError, match="either topics or a pattern"):
            Selection(topics, pattern)
    with pytest.raises(ValueError, match=r"'\(' is not a valid regular expression: missing \)"):
        Selection(pattern="(")


def test_the_layout_has_the_racks_of_each_partition_and_only_existing_topics() -> None:
    assert layout(VIEW, ["orders-us", "orders-eu", "orders-gone", "later"]) == {
        "orders-eu": [{"rack-a", "rack-b"}, {"rack-b"}],
        "orders-us": [frozenset()],
    }


def test_a_groups_subscription_is_the_union_of_its_members() -> None:
    members = [Member(id="a", topics=frozenset({"t"})), Member(id="b", topics=frozenset({"t", "u"}))]
    assert wanted_by(members) == {"t", "u"}
    assert wanted_by([]) == frozenset()
