"""Dead letters: records rejected by a share group are written to a separate topic, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.records.reader import RecordReader
from ottla.storage.config import LogConfig
from ottla.testing.ephemeral import EphemeralBroker

from .making import create_topic, fetch, partition_count, produce, set_topic_config
from .raw_client import RawClient
from .sharing import ACCEPT, REJECT, RELEASE, ShareMember, set_group_config

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.records.reader import Record


@pytest.fixture
def member(client: RawClient, name: str) -> ShareMember:
    assert set_group_config(client, name, dead_letter_topic=f"{name}-dead", share_delivery_count_limit=2) == 0
    return ShareMember(client, name, name, create_topic(client, name))


def letters(client: RawClient, topic: str) -> list[Record]:
    return list(RecordReader(bytes(fetch(client, topic).records or b"")))


def why(letter: Record) -> dict[str, str]:
    prefix = "ottla-dead-letter-"
    return {name.removeprefix(prefix): (value or b"").decode() for name, value in letter.headers if prefix in name}


def test_a_rejected_record_becomes_a_dead_letter_with_the_reason(client: RawClient, member: ShareMember) -> None:
    produce(client, member.topic, b"good", b"bad")
    member.fetch()
    assert member.acknowledge(0, 1, ACCEPT, REJECT) == ErrorCode.NONE
    [letter] = letters(client, f"{member.topic}-dead")
    assert letter.value == b"bad"
    assert why(letter) == {
        "group": member.group,
        "topic": member.topic,
        "partition": "0",
        "offset": "1",
        "delivery-count": "1",
        "reason": "rejected",
    }
    assert member.fetch().ranges == []


def test_a_record_delivered_too_often_becomes_a_dead_letter(client: RawClient, member: ShareMember) -> None:
    produce(client, member.topic, b"bad")
    for _ in range(2):
        member.fetch()
        assert member.acknowledge(0, 0, RELEASE) == ErrorCode.NONE
    [letter] = letters(client, f"{member.topic}-dead")
    assert (letter.value, why(letter)["reason"], why(letter)["delivery-count"]) == (b"bad", "delivery-count-limit", "2")


def test_a_record_rejected_in_the_dead_letter_topic_is_dropped(client: RawClient, name: str) -> None:
    topic_id = create_topic(client, name)
    assert set_group_config(client, name, dead_letter_topic=name) == ErrorCode.NONE
    member = ShareMember(client, name, name, topic_id)
    produce(client, name, b"bad")
    member.fetch()
    assert member.acknowledge(0, 0, REJECT) == ErrorCode.NONE
    assert member.fetch().ranges == []
    assert len(letters(client, name)) == 1


def test_no_record_is_archived_before_its_dead_letter_is_written(client: RawClient, member: ShareMember) -> None:
    dead = f"{member.topic}-dead"
    create_topic(client, dead, configs={"max.message.bytes": "80"})
    produce(client, member.topic, b"x" * 200, b"good")
    member.fetch()
    assert member.acknowledge(0, 1, REJECT, ACCEPT) == ErrorCode.MESSAGE_TOO_LARGE
    assert member.fetch().ranges == []
    set_topic_config(client, dead, "max.message.bytes", "100000")
    # It is retried automatically; the next rejected record only makes it sooner.
    produce(client, member.topic, b"bad")
    member.fetch()
    assert member.acknowledge(2, 2, REJECT) == ErrorCode.NONE
    assert [len(letter.value or b"") for letter in letters(client, dead)] == [200, 3]


def test_a_lock_that_expires_at_the_delivery_limit_makes_a_dead_letter(tmp_path: Path) -> None:
    del tmp_path
    with EphemeralBroker() as broker, RawClient(broker.bootstrap_servers) as client:
        assert set_group_config(client, "g", dead_letter_topic="dead", share_delivery_count_limit=1) == 0
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        create_topic(client, "dead", partitions=2)
        produce(client, "t", b"bad")
        member.fetch()
        broker.clock.advance(31)
        [letter] = letters(client, "dead")
        assert why(letter)["reason"] == "delivery-count-limit"


def test_dead_letters_are_fsynced_first_if_configured(tmp_path: Path) -> None:
    settings = Settings(log=LogConfig(flush="ack"))
    with ottla.Broker(tmp_path, settings=settings) as broker, RawClient(broker.bootstrap_servers) as client:
        assert set_group_config(client, "g", dead_letter_topic="dead") == 0
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        produce(client, "t", b"bad")
        member.fetch()
        assert member.acknowledge(0, 0, REJECT) == ErrorCode.NONE
        log = broker.broker.topics.partition("dead", 0).log
        assert log.recovery_point == log.next_offset == 1


@pytest.mark.parametrize(
    "config",
    [
        {"dead_letter_topic": "no/topic"},
        {"share_delivery_count_limit": 0},
        {"share_auto_offset_reset": "tomorrow"},
        {"share_session_timeout_ms": 1000, "share_heartbeat_interval_ms": 2000},
        {"share_record_lock_duration": 5},
    ],
)
def test_invalid_configs_are_refused(client: RawClient, name: str, config: dict[str, str | int]) -> None:
    assert set_group_config(client, name, **config) == ErrorCode.INVALID_CONFIG


def test_a_group_starts_at_its_configured_offset(client: RawClient, name: str) -> None:
    topic_id = create_topic(client, name)
    produce(client, name, b"a")
    assert set_group_config(client, name, share_auto_offset_reset="earliest") == ErrorCode.NONE
    assert ShareMember(client, name, name, topic_id).fetch().values == {0: b"a"}
    hourly = f"{name}-hourly"
    assert set_group_config(client, hourly, share_auto_offset_reset="by_duration:PT1H") == ErrorCode.NONE
    assert ShareMember(client, hourly, name, topic_id).fetch().values == {0: b"a"}
    assert partition_count(client, name) == 1
