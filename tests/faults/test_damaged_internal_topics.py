"""Damaged internal topics: the broker starts, serves intact state, and loses nothing silently."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.broker.making import create_topic, produce
from tests.broker.raw_client import RawClient
from tests.broker.sharing import ACCEPT, ShareMember
from tests.broker.transacting import Transactional

from ottla.core.errors import ErrorCode
from ottla.wire.messages import fetch as fetching
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OFFSETS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
PATIENCE_S = 30


class Serving(NamedTuple):
    process: subprocess.Popen[str]
    client: RawClient
    told: Path


@contextmanager
def serving(folder: Path) -> Iterator[Serving]:
    told = folder.with_suffix(".log")
    command = [sys.executable, "-m", "ottla", "serve", "--data-dir", str(folder), "--port", "0", "--http-port", "-1"]
    with told.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"Kafka on (\S+:\d+)", process.stdout.readline())
        assert found, told.read_text()
        with RawClient(found[1]) as client:
            yield Serving(process, client, told)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0, told.read_text()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def written(folder: Path) -> None:
    """Write records, committed offsets, transactions and share group acknowledgements."""
    with serving(folder) as server:
        client = server.client
        topic_id = create_topic(client, "orders")
        produce(client, "orders", b"a", b"b", b"c")
        for offset in range(1, 4):
            assert commit(client, offset) == ErrorCode.NONE
        producer = Transactional(client, "billing")
        for _ in range(3):
            producer.write("orders", b"in a transaction")
            producer.commit()
        member = ShareMember(client, "workers", "orders", topic_id)
        for _ in range(3):
            produce(client, "orders", b"work")
            delivered = member.fetch()
            for offset in delivered.offsets:
                assert member.acknowledge(offset, offset, ACCEPT) == ErrorCode.NONE


def commit(client: RawClient, offset: int) -> int:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="orders", partitions=(part,))
    request = OffsetCommitRequest(group_id="readers", generation_id_or_member_epoch=-1, member_id="", topics=(topic,))
    error: int = client.ask(request, 8).topics[0].partitions[0].error_code
    return error


def damage(folder: Path, topic: str, how: str) -> None:
    [file] = (folder / f"{topic}-0").glob("*.log")
    data = bytearray(file.read_bytes())
    if how == "truncated":
        file.write_bytes(data[: len(data) // 2])
    else:
        data[len(data) // 2] ^= 1
        file.write_bytes(data)


def values(client: RawClient) -> int:
    wanted = fetching.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = fetching.FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=(fetching.FetchTopic(topic="orders", partitions=(wanted,)),)
    )
    data = client.ask(request, 12).responses[0].partitions[0]
    assert data.error_code == ErrorCode.NONE
    return data.high_watermark


def committed(client: RawClient) -> tuple[int, int]:
    group = OffsetFetchRequestGroup(group_id="readers", topics=None)
    [answer] = client.ask(OffsetFetchRequest(groups=(group,)), 8).groups
    offsets = [part.committed_offset for topic in answer.topics for part in topic.partitions]
    return answer.error_code, offsets[0] if offsets else -1


def errors_of(client: RawClient, topic: str) -> list[int]:
    """Error codes of requests for the state in this internal topic."""
    if topic == OFFSETS:
        found = client.ask(FindCoordinatorRequest(key="readers", key_type=0), 3).error_code
        listed = client.ask(ListGroupsRequest(states_filter=(), types_filter=())).error_code
        return [committed(client)[0], commit(client, 9), found, listed]
    if topic == TRANSACTIONS:
        [described] = client.ask(DescribeTransactionsRequest(transactional_ids=("billing",))).transaction_states
        found = client.ask(FindCoordinatorRequest(key="billing", key_type=1), 3).error_code
        listed = client.ask(ListTransactionsRequest(state_filters=(), producer_id_filters=())).error_code
        return [described.error_code, found, listed]
    [found] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))).topics
    member = ShareMember(client, "workers", "orders", found.topic_id)  # type: ignore[attr-defined]
    return [client.receive(member.send_fetch()).responses[0].partitions[0].error_code]


@pytest.mark.parametrize("how", ["flipped", "truncated"])
@pytest.mark.parametrize("topic", [OFFSETS, TRANSACTIONS, SHARES])
def test_other_topics_are_served_and_damage_is_reported_until_repaired(tmp_path: Path, topic: str, how: str) -> None:
    folder = tmp_path / "data"
    written(folder)
    damage(folder, topic, how)

    for _ in range(2):  # a restart does not clear the error
        with serving(folder) as server:
            assert values(server.client) > 0
            produce(server.client, "orders", b"more")
            told = server.told.read_text()
            assert set(errors_of(server.client, topic)) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
            assert f"{topic}-0: damaged" in told
            assert f"ottla log repair {topic}-0" in told

    repaired = subprocess.run(
        [sys.executable, "-m", "ottla", "log", "repair", str(folder / f"{topic}-0"), "--yes"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert re.search(r"offsets \d+ (to \d+|up to the end of the log) are lost", repaired.stdout), repaired.stdout
    with serving(folder) as server:
        assert set(errors_of(server.client, topic)) == {ErrorCode.NONE}
        assert "damaged" not in server.told.read_text()
