"""Log and audit log do not grow with the size of client input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.broker.making import batch
from tests.broker.raw_client import HungUpError, RawClient

from ottla.core.errors import ErrorCode
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

from .probed import Probed

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Guarded

MOST_HELD_S = 0.1
MANY = 20_000
NAMES = [f"unknown-topic-with-some-name-{number}" for number in range(MANY)]


def test_a_long_user_name_is_truncated(guarded: Guarded) -> None:
    before = len(guarded.audit)
    with RawClient(guarded.address) as client:
        client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
        name = b"u" * 480_000
        try:
            client.ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=" + name + b",r=abc"))
            client.ask(SaslAuthenticateRequest(auth_bytes=b"c=biws,r=abc,p=AAAA"))
        except HungUpError:
            pass  # a message of that size is refused
    assert len(guarded.audit) - before < 2000


@pytest.mark.parametrize("kind", ["metadata", "describe"])
def test_many_denied_names_are_one_audit_line_and_do_not_block_others(guarded: Guarded, kind: str) -> None:
    asked: MetadataRequest | DescribeTopicPartitionsRequest
    if kind == "metadata":
        asked = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in NAMES))
    else:
        asked = DescribeTopicPartitionsRequest(topics=tuple(TopicRequest(name=name) for name in NAMES))
    with guarded.logged_in() as client:
        before = len(guarded.audit)
        guarded.begin()
        answer = client.ask(asked)
        cost = guarded.cost()
        written = guarded.audit[before:]
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}  # type: ignore[attr-defined]
    assert len(answer.topics) == MANY  # type: ignore[attr-defined]
    [line] = [json.loads(each) for each in written.splitlines()]
    assert (line["event"], line["count"], line["name"]) == ("denied", MANY, NAMES[0])
    assert len(written) < 5000
    assert cost.held_s < MOST_HELD_S


def test_log_lines_caused_by_one_address_are_rate_limited(guarded: Guarded) -> None:
    with guarded.logged_in() as client:
        before = len(guarded.audit.splitlines())
        for number in range(1000):
            client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=f"denied-{number}"),)))
        lines = guarded.audit.splitlines()[before:]
    assert 50 < len(lines) < 600
    assert any(json.loads(line)["event"] == "suppressed" for line in lines)


def test_a_refused_produce_request_is_one_line(tmp_path: Path) -> None:
    parts = tuple(PartitionProduceData(index=index, records=batch(b"v")) for index in range(5000))
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(name="n" * 30_000, partition_data=parts),)
    )
    with Probed(tmp_path, "--log-level", "info") as probed:
        with RawClient(probed.address, client_id="c" * 30_000) as client:
            probed.begin()
            client.ask(request, 12)
            cost = probed.cost()
        assert probed.terminate() == 0
    lines = [line for line in probed.log.read_text().splitlines() if "refused a produce request" in line]
    assert len(lines) == 1
    assert len(lines[0]) < 2000
    assert cost.held_s < MOST_HELD_S
