"""Fetches whose records are sent from the files: the same bytes as if they were read first."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from tests.records.making import TRANSACTIONAL, batch, record

from ottla.core.file_range import FileRange
from ottla.net.file_sending import FileSending
from ottla.records.control import EndMarker
from ottla.wire.codec import decode_response

from .fetching import MIB, fetch, in_the_loop, offsets, partition_of, request, wanted
from .raw_client import HungUpError, RawClient

if TYPE_CHECKING:
    import ottla

    from .making import Topic

pytest.importorskip("ottla.storage.segment_files.batch_ends", reason="needs a C compiler")

SMALL, USUAL, LARGE = 200, 16_000, 700_000
LARGEST = MIB - 1000


async def fill(broker: ottla.Broker, topic: Topic, *sizes: int, partition: int = 0) -> None:
    for size in sizes:
        partition_of(broker, topic, partition).append(batch(record(value=bytes(size))))


async def abort_transaction(broker: ottla.Broker, topic: Topic) -> None:
    partition = partition_of(broker, topic)
    numbers = {"producer_id": 99, "producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL}
    partition.append(batch(record(value=bytes(USUAL)), **numbers))
    partition.append_end_marker((99, 0), EndMarker(is_commit=False, coordinator_epoch=0))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the responses with ranges of files."""
    sizes: list[int] = []
    begin = FileSending.__init__

    def counted(self: FileSending, *given: object) -> None:
        begin(self, *given)  # type: ignore[arg-type]
        sizes.append(self.unsent_bytes)

    monkeypatch.setattr(FileSending, "__init__", counted)
    return sizes


def read_all(client: RawClient, topic: Topic, version: int, **more: int) -> list[bytes]:
    """The responses until the end of all three partitions."""
    frames = []
    at = [0, 0, 0]
    while True:
        parts = [wanted(offset, number, partition_max_bytes=800_000) for number, offset in enumerate(at)]
        asked = client.send(request(topic, parts, version, **more), version)
        frames.append(client.receive_frame())
        answer = decode_response(asked.request, version, asked.correlation_id, memoryview(frames[-1]))
        [answered] = answer.responses
        if not any(data.records for data in answered.partitions):
            return frames
        for data in answered.partitions:
            at[data.partition_index] = [at[data.partition_index], *(one + 1 for one in offsets(data))][-1]


@pytest.mark.parametrize("version", [4, 11, 12, 17])
@pytest.mark.parametrize("isolation_level", [0, 1])
def test_files_are_sent_as_they_would_be_read(
    broker: ottla.Broker,
    made: Topic,
    sent: list[int],
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    isolation_level: int,
) -> None:
    in_the_loop(broker, fill(broker, made, *[SMALL] * 4000))
    in_the_loop(broker, abort_transaction(broker, made))
    in_the_loop(broker, fill(broker, made, *[USUAL] * 100, SMALL, *[LARGE] * 3))
    in_the_loop(broker, fill(broker, made, *[USUAL] * 50, LARGEST, USUAL, partition=1))
    in_the_loop(broker, fill(broker, made, SMALL, partition=2))
    limits = {"isolation_level": isolation_level, "max_bytes": 3 * MIB // 2}
    with RawClient(broker.bootstrap_servers) as client:
        from_files = read_all(client, made, version, **limits)
    assert len(sent) >= 3
    assert sum(sent) > 3 * MIB
    monkeypatch.setattr(broker.broker.listener.ports[0], "sends_files", False)
    with RawClient(broker.bootstrap_servers) as client:
        read = read_all(client, made, version, **limits)
    assert from_files == read


def test_requests_behind_a_large_response_are_answered_after_it(
    broker: ottla.Broker, made: Topic, sent: list[int], client: RawClient
) -> None:
    in_the_loop(broker, fill(broker, made, *[LARGE] * 12))
    parts = [wanted(0, partition_max_bytes=16 * MIB)]
    asked = [client.send(request(made, parts, 12), 12) for _ in range(4)]
    for each in asked:
        [answered] = client.receive(each).responses
        assert offsets(answered.partitions[0]) == list(range(12))
    assert sent
    assert FileRange.count == 0


def test_nothing_is_left_of_a_response_whose_client_is_gone(broker: ottla.Broker, made: Topic, sent: list[int]) -> None:
    in_the_loop(broker, fill(broker, made, *[LARGE] * 30))
    client = RawClient(broker.bootstrap_servers)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.send(request(made, [wanted(0, partition_max_bytes=32 * MIB)], 12), 12)
    client.socket.recv(1)
    [connection] = [each for each in broker.broker.listener.connections if each.peer == client.socket.getsockname()]

    async def is_stalled() -> bool:
        return connection.is_stalled

    assert in_the_loop(broker, is_stalled())
    assert sent
    assert FileRange.count == 1
    client.close()
    with RawClient(broker.bootstrap_servers) as other:
        while FileRange.count:
            fetch(other, made, wanted(30), version=12)


def test_a_truncated_file_closes_the_connection(
    broker: ottla.Broker, made: Topic, sent: list[int], client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_loop(broker, fill(broker, made, *[LARGE] * 2))
    send = FileRange.send

    def shortened(self: FileRange, to: int, start: int) -> int:
        path = partition_of(broker, made).log.segments.active.path
        with path.open("r+b") as file:
            file.truncate(1000)
        return send(self, to, start)

    monkeypatch.setattr(FileRange, "send", shortened)
    client.send(request(made, [wanted(0)], 12), 12)
    with pytest.raises(HungUpError):
        client.receive_frame()
    assert sent
    assert FileRange.count == 0


def test_a_connection_is_closed_only_after_the_response(
    broker: ottla.Broker, made: Topic, sent: list[int], client: RawClient
) -> None:
    in_the_loop(broker, fill(broker, made, *[LARGE] * 12))
    asked = client.send(request(made, [wanted(0, partition_max_bytes=16 * MIB)], 12), 12)
    # Too large to be a request: the connection is closed after the answer.
    client.send_bytes(b"\x7f\xff\xff\xff")
    [answered] = client.receive(asked).responses
    assert offsets(answered.partitions[0]) == list(range(12))
    with pytest.raises(HungUpError):
        client.receive_frame()
    assert sent
