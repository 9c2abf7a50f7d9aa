"""The client's cluster view, response by response."""

from __future__ import annotations

from ottla.client.view import EMPTY_VIEW, BrokerAddress, ClusterView
from ottla.core.errors import ErrorCode
from ottla.core.ids import Address
from ottla.wire.messages.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic

from .fake_broker import topic


def answer(*topics: MetadataResponseTopic, brokers: tuple[int, ...] = (0,)) -> MetadataResponse:
    return MetadataResponse(
        brokers=tuple(MetadataResponseBroker(node_id=node, host="h", port=node + 1, rack="r") for node in brokers),
        cluster_id="c",
        controller_id=0,
        topics=topics,
    )


def view(*topics: MetadataResponseTopic) -> ClusterView:
    return EMPTY_VIEW.merged(answer(*topics), are_all_topics=True)


def test_a_response_updates_brokers_topics_and_leaders() -> None:
    known = EMPTY_VIEW.merged(answer(topic("t", leaders=(0, 7, -1)), brokers=(0, 7)), are_all_topics=False)
    assert (known.cluster_id, known.controller_id) == ("c", 0)
    assert known.brokers[7] == BrokerAddress(7, "h", 8, "r")
    assert known.brokers[7].address == Address("h", 8)
    assert [known.leader("t", partition) for partition in range(4)] == [0, 7, -1, -1]
    assert known.leader("other", 0) == -1
    assert known.topics["t"].has_leader
    assert known.topics["t"].error is ErrorCode.NONE


def test_a_response_about_some_topics_keeps_the_others_and_replaces_the_brokers() -> None:
    known = view(topic("a"), topic("b")).merged(answer(topic("b", leaders=(3,)), brokers=(3,)), are_all_topics=False)
    assert list(known.topics) == ["a", "b"]
    assert known.leader("b", 0) == 3
    assert list(known.brokers) == [3]


def test_a_response_about_all_topics_removes_deleted_ones() -> None:
    assert list(view(topic("a"), topic("b")).merged(answer(topic("b")), are_all_topics=True).topics) == ["b"]


def test_an_unknown_topic_is_remembered_as_unknown() -> None:
    known = view(topic("t", error_code=3, leaders=())).topics["t"]
    assert known.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not known.has_leader


def test_an_unknown_error_code_is_still_an_error() -> None:
    assert view(topic("t", error_code=9999)).topics["t"].error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_outdated_metadata_does_not_restore_an_old_leader() -> None:
    known = view(topic("t", leaders=(1,), epoch=5))
    assert known.merged(answer(topic("t", leaders=(0,), epoch=4)), are_all_topics=True).leader("t", 0) == 1
    assert known.merged(answer(topic("t", leaders=(0,), epoch=5)), are_all_topics=True).leader("t", 0) == 0
    assert known.merged(answer(topic("t", leaders=(2,), epoch=6)), are_all_topics=True).leader("t", 0) == 2


def test_a_re_created_topic_resets_its_leader_epochs() -> None:
    known = view(topic("t", leaders=(1,), epoch=5))
    again = known.merged(answer(topic("t", leaders=(0,), epoch=0, topic_id=b"n" * 16)), are_all_topics=True)
    assert again.leader("t", 0) == 0


def test_without_topic_ids_and_epochs_the_newest_response_wins() -> None:
    known = view(topic("t", leaders=(1,), epoch=5, topic_id=bytes(16)))
    for epoch in (4, -1):
        old = known.merged(answer(topic("t", leaders=(0,), epoch=epoch, topic_id=bytes(16))), are_all_topics=True)
        assert old.leader("t", 0) == 0


def test_partitions_are_sorted_by_index() -> None:
    unordered = topic("t", leaders=(0, 0, 0))
    turned = MetadataResponseTopic(error_code=0, name="t", partitions=unordered.partitions[::-1])
    assert list(view(turned).topics["t"].partitions) == [0, 1, 2]


def test_a_broker_can_be_added() -> None:
    assert list(view().with_broker(BrokerAddress(9, "h", 1)).brokers) == [0, 9]
