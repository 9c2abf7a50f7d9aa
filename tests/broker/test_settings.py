from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.broker.config import BrokerConfig
from ottla.broker.embedded import EmbeddedBroker
from ottla.broker.settings import Settings
from ottla.core.ids import TopicPartition
from ottla.net.config import NetConfig
from ottla.share.config import ShareConfig
from ottla.transactions.config import TransactionConfig

if TYPE_CHECKING:
    from pathlib import Path


def partitions(settings: Settings) -> tuple[int, int, int]:
    return (
        settings.broker.offsets_topic_partitions,
        settings.transactions.state_topic_partitions,
        settings.share.state_topic_partitions,
    )


def test_internal_topics_have_fewer_partitions_on_a_standalone_broker_than_in_a_cluster() -> None:
    assert partitions(Settings().completed(is_member=False)) == (1, 1, 1)
    assert partitions(Settings().completed(is_member=True)) == (12, 12, 12)


def test_a_configured_number_of_partitions_is_used() -> None:
    chosen = Settings(
        broker=BrokerConfig(offsets_topic_partitions=2),
        transactions=TransactionConfig(state_topic_partitions=3),
        share=ShareConfig(state_topic_partitions=4),
    )

    assert partitions(chosen.completed(is_member=True)) == (2, 3, 4)


@pytest.mark.parametrize("section", [BrokerConfig, TransactionConfig, ShareConfig])
def test_a_negative_number_of_partitions_is_refused(section: type) -> None:
    name = "offsets_topic_partitions" if section is BrokerConfig else "state_topic_partitions"
    with pytest.raises(ValueError, match=f"{name} must be at least 0, got -1"):
        section(**{name: -1})


def test_an_existing_topic_keeps_its_partitions_whatever_the_default(tmp_path: Path) -> None:
    earlier = Settings(broker=BrokerConfig(offsets_topic_partitions=3), net=NetConfig(port=0))
    at, groups = TopicPartition("t", 0), ["a", "b", "c", "d", "e"]
    with EmbeddedBroker(tmp_path, earlier) as broker, ottla.Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t")
        for number, group in enumerate(groups):
            admin.alter_group_offsets(group, {at: number})

    with EmbeddedBroker(tmp_path, Settings(net=NetConfig(port=0))) as broker:
        assert len(broker.broker.topics.by_name["__consumer_offsets"].partitions) == 3
        with ottla.Admin(broker.bootstrap_servers) as admin:
            assert [admin.group_offsets(group)[at].offset for group in groups] == [0, 1, 2, 3, 4]
