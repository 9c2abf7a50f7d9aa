"""Regular expressions from clients: none blocks the broker's other clients or its shutdown."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
from tests.broker.making import create_topic
from tests.broker.raw_client import RawClient
from tests.broker.transacting import Transactional
from tests.cli.serving import Serve

from ottla.core.errors import ErrorCode
from ottla.core.patterns import InvalidPattern, Pattern
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = [f"topic-{number:03}-" + "ab" * 119 for number in range(40)]
BOMBS = ["(.?){490}", "(.|.)*X", "(a*)*b", "(((){1000}){1000}){1000}", "a{" + "9" * 5000 + "}", "{" * 8000, "." * 9000]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serve]:
    """A separate process: one that hangs can be killed."""
    with Serve(tmp_path) as served:
        yield served


def joined(client: RawClient, group: str, member: str, pattern: str) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_regex=pattern,
        topic_partitions=(),
    )
    return client.ask(request, 1)


def test_a_pattern_of_transactional_ids_cannot_block_the_broker(served: Serve) -> None:
    with RawClient(served.address) as client, RawClient(served.address) as other:
        Transactional(client, "a" * 60)
        asked = ListTransactionsRequest(state_filters=(), producer_id_filters=(), transactional_id_pattern="(.|.)*X")
        assert client.ask(asked).transaction_states == ()
        assert other.ask(MetadataRequest(topics=())).brokers
    assert served.terminate() == 0


def test_a_pattern_of_transactional_ids_may_have_any_character(served: Serve) -> None:
    with RawClient(served.address) as client:
        Transactional(client, "Größe 7€")
        for pattern, is_found in (("Gr.+ [0-9]€", True), ("(?i)GRÖSSE.*", False), (r"\w+", False), ("[^x]+", True)):
            asked = ListTransactionsRequest(state_filters=(), producer_id_filters=(), transactional_id_pattern=pattern)
            assert bool(client.ask(asked).transaction_states) is is_found, pattern


@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
def test_an_expensive_pattern_is_refused_or_matched_quickly(bomb: str) -> None:
    tracemalloc.start()
    try:
        pattern = Pattern(bomb)
        for name in LONG:
            pattern.matches(name)
    except InvalidPattern:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2 << 20


def test_a_subscription_with_a_costly_pattern_is_refused_and_others_are_served(served: Serve) -> None:
    with RawClient(served.address) as client, RawClient(served.address) as other:
        for name in LONG:
            create_topic(client, name)
        refused = joined(client, "g", "m", "(.?){490}")
        assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert "too expensive" in (refused.error_message or "")
        assert other.ask(MetadataRequest(topics=())).brokers
        assert joined(client, "g", "m", "topic-0.*").error_code == ErrorCode.NONE


def test_a_group_has_a_limited_number_of_patterns(served: Serve) -> None:
    with RawClient(served.address) as client:
        answers = [joined(client, "g", f"m-{number}", f"topic-{number}.*") for number in range(17)]
        assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 16 + [ErrorCode.INVALID_REQUEST]
        assert joined(client, "g", "m-18", "topic-3.*").error_code == ErrorCode.NONE


def test_new_topics_reach_a_group_that_has_a_pattern(served: Serve) -> None:
    with RawClient(served.address) as client:
        first = joined(client, "g", "m", "new-.*")
        assert first.assignment is not None
        assert first.assignment.topic_partitions == ()
        created = create_topic(client, "new-topic")
        again = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=first.member_epoch, topic_partitions=()
        )
        answer = client.ask(again, 1)
        assert answer.assignment is not None
        assert [each.topic_id for each in answer.assignment.topic_partitions] == [created]
