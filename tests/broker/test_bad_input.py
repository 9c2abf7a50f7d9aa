"""Bad input on the Kafka port gets an answer or closes that connection; well-behaved clients are not affected."""

from __future__ import annotations

import random
import socket
import struct
import time
from typing import TYPE_CHECKING

import cramjam
import pytest
from tests.records.making import GZIP, forget_peak, peak_bytes
from tests.records.making import batch as any_batch

from ottla.core.errors import ErrorCode
from ottla.wire.apis import (
    API_VERSIONS,
    FETCH,
    FIND_COORDINATOR,
    JOIN_GROUP,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    SYNC_GROUP,
    Api,
)
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .making import batch, create_topic, fetch, produce, send_batch, values_in
from .raw_client import HungUpError, RawClient
from .requests import Known, random_frame, served_versions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import ottla

MUTATIONS = 24
MIB = 1 << 20
MAY_WAIT = {PRODUCE.key, FETCH.key, JOIN_GROUP.key, SYNC_GROUP.key}
"""APIs whose responses may take long or never come."""


class Victim:
    """A broker, and a well-behaved client that must be served throughout."""

    def __init__(self, broker: ottla.Broker) -> None:
        self.broker = broker
        self.steady = RawClient(broker.bootstrap_servers, "steady")
        create_topic(self.steady, "steady")
        self._count = 0

    def known(self) -> Known:
        """Create the topics that requests refer to; an earlier request may have deleted them."""
        names = ("fuzzed-a", "fuzzed-b")
        asked = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))
        ids = tuple(topic.topic_id for topic in self.steady.ask(asked).topics)
        return Known((*names, "group", "__consumer_offsets"), ids)

    def must_be_well(self) -> None:
        """Check that the well-behaved client gets correct answers and no internal error was logged."""
        assert produce(self.steady, "steady", b"%d" % self._count) == self._count
        assert values_in(self.steady, "steady", self._count) == [b"%d" % self._count]
        self._count += 1
        assert self.broker.broker.listener.counts["failed"] == 0

    def send(self, data: bytes, *, may_wait: bool = False) -> bytes | None:
        """The response to these bytes; None if the connection is closed, or if the API may wait and does."""
        with RawClient(self.broker.bootstrap_servers, timeout_s=0.02 if may_wait else 20) as client:
            try:
                client.send_bytes(data)
                return client.receive_frame()
            except (HungUpError, ConnectionError):
                return None
            except TimeoutError:
                assert may_wait, data.hex()
                return None

    @property
    def refused(self) -> int:
        return self.broker.broker.listener.counts["bad request"]


@pytest.fixture(scope="module")
def victim(broker: ottla.Broker) -> Iterator[Victim]:
    victim = Victim(broker)
    yield victim
    victim.must_be_well()
    victim.steady.close()


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def mutated(data: bytes, pick: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(pick.randint(1, 3)):
        # After the API key and version, so that this API's handler gets the mutated bytes.
        at = pick.randrange(4, len(changed) + 1)
        match pick.randrange(6):
            case 0:
                changed[at : at + 1] = bytes([pick.choice((0, 1, 0x7F, 0x80, 0xFF, pick.randrange(256)))])
            case 1:
                del changed[at : at + pick.randint(1, 8)]
            case 2:
                changed[at:at] = pick.randbytes(pick.randint(1, 8))
            case 3:
                changed[at : at + 4] = pick.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0"))
            case 4:
                changed[at : at + 2] = pick.choice((b"\xff\xff", b"\x7f\xff", b"\xff\xfe", b"\0\0"))
            case 5:
                del changed[at:]
    return bytes(changed)


@pytest.mark.parametrize(
    ("api", "version"), [pytest.param(*each, id=f"{each[0].name}-v{each[1]}") for each in served_versions()]
)
def test_mutated_requests_are_answered_or_cost_one_connection(victim: Victim, api: Api, version: int) -> None:
    pick = random.Random(f"bad input {api.name} {version}")
    known = victim.known()
    peak = forget_peak()
    for number in range(MUTATIONS):
        whole = random_frame(api, version, pick, known)
        # Some are sent unchanged: random requests are strange enough.
        sent = mutated(whole, pick) if number % 4 else whole
        victim.send(framed(sent), may_wait=api.key in MAY_WAIT)
        assert victim.broker.broker.listener.counts["failed"] == 0, sent.hex()
    victim.must_be_well()
    assert peak_bytes() - peak < 100 * MIB


def test_mutated_headers_are_answered_or_cost_one_connection(victim: Victim) -> None:
    pick = random.Random("headers")
    known = victim.known()
    served = list(served_versions())
    for _ in range(500):
        whole = random_frame(*pick.choice(served), pick, known)
        sent = bytearray(whole)
        sent[pick.randrange(12)] = pick.randrange(256)
        victim.send(framed(bytes(sent)), may_wait=True)
    victim.must_be_well()


# One by one


def header(api: Api, version: int, client_id: bytes = b"\x00\x01x") -> bytes:
    return struct.pack(">hhi", api.key, version, 7) + client_id + (b"\x00" if api.is_flexible(version) else b"")


def refused_without_harm(victim: Victim, data: bytes) -> None:
    before = victim.refused
    assert victim.send(data) is None
    assert victim.refused == before + 1
    victim.must_be_well()


@pytest.mark.parametrize("seed", range(20))
def test_garbage_is_refused(victim: Victim, seed: int) -> None:
    garbage = random.Random(seed).randbytes(1000)
    with RawClient(victim.broker.bootstrap_servers) as client:
        # A negative size, or one with an unknown request.
        client.send_bytes(garbage if seed % 2 else framed(garbage))
        client.socket.shutdown(socket.SHUT_WR)
        with pytest.raises(HungUpError):
            client.receive_frame()
    victim.must_be_well()


def test_an_empty_frame_is_refused(victim: Victim) -> None:
    refused_without_harm(victim, framed(b""))


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 100 * MIB + 1])
def test_a_frame_of_an_impossible_size_is_refused_before_its_body_arrives(victim: Victim, size: int) -> None:
    refused_without_harm(victim, struct.pack(">i", size))


def test_http_tls_and_ssh_are_refused(victim: Victim) -> None:
    for spoken in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"SSH-2.0-x\r\n"):
        refused_without_harm(victim, spoken)


def test_a_frame_that_is_announced_but_never_sent_takes_no_memory(victim: Victim) -> None:
    peak = forget_peak()
    clients = [RawClient(victim.broker.bootstrap_servers) for _ in range(100)]
    for client in clients:
        client.send_bytes(struct.pack(">i", 100 * MIB) + b"a few")
    victim.must_be_well()
    assert peak_bytes() - peak < 50 * MIB
    for client in clients:
        client.close()


def test_a_request_may_arrive_one_byte_at_a_time(victim: Victim) -> None:
    with RawClient(victim.broker.bootstrap_servers) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed(header(API_VERSIONS, 0)):
            client.send_bytes(bytes([byte]))
        assert client.receive_frame()[:6] == b"\x00\x00\x00\x07\x00\x00"
    victim.must_be_well()


@pytest.mark.parametrize("client_id", [b"\xff\xfe", b"\x9c\x40" + b"x" * 40_000, b"\x7f\xff", b"\x00\x02\xc3\x28"])
def test_a_client_id_of_minus_2_or_40000_bytes_or_invalid_utf8_is_refused(victim: Victim, client_id: bytes) -> None:
    refused_without_harm(victim, framed(header(METADATA, 1, client_id) + b"\xff\xff\xff\xff"))


@pytest.mark.parametrize("client_id", [b"\xff\xff", b"\x00\x00", b"\x7f\xff" + b"x" * 32_767])
def test_an_empty_or_null_or_32767_byte_client_id_is_served(victim: Victim, client_id: bytes) -> None:
    assert victim.send(framed(header(METADATA, 1, client_id) + b"\x00\x00\x00\x00")) is not None


@pytest.mark.parametrize(
    "body",
    [
        header(METADATA, 1) + b"\x7f\xff\xff\xff",
        header(METADATA, 9) + b"\xff\xff\xff\xff\x0f",
        header(METADATA, 1) + b"\xff\xff\xff\xfe",
        header(FETCH, 4) + bytes(17) + b"\x00\x00\x00\x01\x00\x01t\x7f\xff\xff\xff",
        header(PRODUCE, 3) + b"\xff\xff\x00\x01" + bytes(4) + b"\x7f\xff\xff\xff",
    ],
)
def test_arrays_of_two_billion_entries_are_refused_at_once(victim: Victim, body: bytes) -> None:
    peak = forget_peak()
    refused_without_harm(victim, framed(body))
    refused_without_harm(victim, framed(body + bytes(100_000)))
    assert peak_bytes() - peak < 20 * MIB


def test_a_million_nested_empty_arrays_are_refused_at_once(victim: Victim) -> None:
    nested = struct.pack(">i", 1_000_000) + b"\x00\x01t\x00\x00\x00\x00" * 1_000_000
    refused_without_harm(victim, framed(header(LIST_OFFSETS, 1) + struct.pack(">i", -1) + nested))


def test_a_request_with_the_maximum_number_of_entries_does_not_block_others_for_long(victim: Victim) -> None:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    many = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="steady", partitions=(part,) * 59_000),))
    with RawClient(victim.broker.bootstrap_servers) as client:
        sent = client.send(many, 12)
        begun = time.monotonic()
        victim.must_be_well()
        assert time.monotonic() - begun < 8  # well below a second where nothing else runs
        [answer] = client.receive(sent).responses
        assert len(answer.partitions) == 59_000


def test_null_in_a_non_nullable_field_is_refused(victim: Victim) -> None:
    for body in (
        header(METADATA, 0) + b"\xff\xff\xff\xff",
        header(METADATA, 1) + b"\x00\x00\x00\x01\xff\xff",
        header(METADATA, 9) + b"\x02\x00\x00\x00\x00\x00\x00",
        header(FETCH, 4) + bytes(17) + b"\xff\xff\xff\xff",
        header(PRODUCE, 3) + b"\xff\xff\x00\x01" + bytes(4) + b"\xff\xff\xff\xff",
        header(API_VERSIONS, 3) + b"\x00\x00\x00",
    ):
        refused_without_harm(victim, framed(body))


@pytest.mark.parametrize("name", [b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_a_topic_name_that_is_not_utf8_is_refused(victim: Victim, name: bytes) -> None:
    text = struct.pack(">h", len(name)) + name
    refused_without_harm(victim, framed(header(METADATA, 1) + b"\x00\x00\x00\x01" + text))


def folders(victim: Victim) -> set[Path]:
    """The folders in the data folder and beside it."""
    folder = victim.broker.broker.data_dir.path
    return {path for path in (*folder.iterdir(), *folder.parent.iterdir()) if path.is_dir()}


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "x" * 32_000, "a/b", "../../etc", "a\x00b", "\x7f", "a\nb"])
def test_strange_topic_names_are_refused_and_create_no_folders(victim: Victim, name: str) -> None:
    before = folders(victim)
    [topic] = victim.steady.ask(MetadataRequest(topics=(MetadataRequestTopic(name=name),))).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert send_batch(victim.steady, name, batch(b"x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert folders(victim) == before
    victim.must_be_well()


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "x" * 32_000, "a/b", "../../etc", "a\x00b", "ü\n"])
def test_strange_group_and_transactional_ids_are_harmless(victim: Victim, name: str) -> None:
    # The first transactional id creates __transaction_state.
    victim.steady.ask(InitProducerIdRequest(transactional_id="first", transaction_timeout_ms=1000))
    before = folders(victim)
    for version in range(FIND_COORDINATOR.first, FIND_COORDINATOR.last + 1):
        for kind in (0, 1) if version else (0,):
            victim.steady.ask(FindCoordinatorRequest(key=name, key_type=kind, coordinator_keys=(name,)), version)
    victim.steady.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000))
    victim.steady.ask(DescribeGroupsRequest(groups=(name,)))
    victim.steady.ask(HeartbeatRequest(group_id=name, generation_id=1, member_id=name))
    assert folders(victim) == before
    victim.must_be_well()


def test_a_decompression_bomb_is_passed_through_without_being_decompressed(victim: Victim) -> None:
    bomb = memoryview(cramjam.gzip.compress(bytes(900 * MIB // 2)))
    records = any_batch(bytes(bomb), 1, attributes=GZIP, base_timestamp=1, max_timestamp=5)
    create_topic(victim.steady, "bomb")
    peak = forget_peak()
    assert send_batch(victim.steady, "bomb", bytes(records)).error_code == ErrorCode.NONE
    assert len(fetch(victim.steady, "bomb").records or b"") == len(records)
    # This one must decompress it, and stops in time.
    wanted = ListOffsetsTopic(name="bomb", partitions=(ListOffsetsPartition(partition_index=0, timestamp=3),))
    [topic] = victim.steady.ask(ListOffsetsRequest(replica_id=-1, topics=(wanted,))).topics
    assert (topic.partitions[0].error_code, topic.partitions[0].offset) == (ErrorCode.NONE, 0)
    assert peak_bytes() - peak < 300 * MIB
    victim.must_be_well()


def test_of_two_concurrent_creations_of_a_topic_one_succeeds(victim: Victim) -> None:
    with RawClient(victim.broker.bootstrap_servers) as first, RawClient(victim.broker.bootstrap_servers) as second:
        for number in range(20):
            topic = CreatableTopic(
                name=f"race-{number}", num_partitions=1, replication_factor=1, assignments=(), configs=()
            )
            asked = CreateTopicsRequest(topics=(topic,))
            sent = [(each, each.send(asked)) for each in (first, second)]
            codes = {each.receive(request).topics[0].error_code for each, request in sent}
            assert codes == {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
    victim.must_be_well()


def test_bad_input_is_counted_and_its_log_lines_are_rate_limited(
    victim: Victim, caplog: pytest.LogCaptureFixture
) -> None:
    before = victim.refused
    for _ in range(100):
        victim.send(b"\xff\xff\xff\xff")
    assert victim.refused == before + 100
    assert len([record for record in caplog.records if "bad request" in record.getMessage()]) <= 1
