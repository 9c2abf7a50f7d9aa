"""Shards: order, sequence ids and delivery."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.rest.serving import PATIENCE_S

from ottla import Consumer, Producer, TopicPartition
from ottla.dmqp.connection import ShardConnection
from ottla.dmqp.frame import MAX_PAYLOAD_BYTES, Method, Status, encode
from ottla.dmqp.sequences import SEQUENCE_HEADER

from .serving import RawShard

if TYPE_CHECKING:
    from .serving import DmqpBroker

MESSAGES = 400
POPPERS = 6


def test_one_counter_numbers_the_messages_of_all_shards(served: DmqpBroker, topic: str) -> None:
    ports = served.exposed(topic, shards=2)
    with RawShard(ports[0]) as left, RawShard(ports[1]) as right:
        given = [shard.push(b"x").sequence_id for shard in (left, right, right, left)]
        assert given == [0, 1, 2, 3]
        assert [left.pop().sequence_id, left.pop().sequence_id] == [0, 3]
        assert right.peek() == (1, Method.RESPONSE, Status.OK, b"")
        assert right.peek().sequence_id == right.pop().sequence_id == 1


def test_an_explicit_sequence_id_must_be_the_next_one(served: DmqpBroker, topic: str) -> None:
    ports = served.exposed(topic, shards=2)
    with RawShard(ports[0]) as left, RawShard(ports[1]) as right:
        left.push(b"0")
        assert left.push(b"2", sequence_id=2).status == Status.EINVAL
        assert right.push(b"1", sequence_id=1) == (1, Method.RESPONSE, Status.OK, b"")
        assert left.push(b"1 again", sequence_id=1).status == Status.EINVAL
        assert left.push(b"2", sequence_id=2).sequence_id == 2
        assert [left.pop().payload, left.pop().payload, left.pop().status] == [b"0", b"2", Status.ENODATA]


def test_poppers_together_get_everything_and_nothing_twice(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    got: list[list[bytes]] = [[] for _ in range(POPPERS)]
    is_all_pushed = threading.Event()

    def pop(mine: list[bytes]) -> None:
        with RawShard(port) as shard:
            while True:
                is_end = is_all_pushed.is_set()
                reply = shard.pop()
                if reply.status == Status.OK:
                    mine.append(reply.payload)
                elif is_end:
                    return

    threads = [threading.Thread(target=pop, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    with RawShard(port) as shard:
        shard.send(b"".join(encode(0, Method.PUSH, 0, b"%d" % number) for number in range(MESSAGES)))
        assert [shard.receive().sequence_id for _ in range(MESSAGES)] == list(range(MESSAGES))
    is_all_pushed.set()
    for thread in threads:
        thread.join()
    assert sorted(int(one) for mine in got for one in mine) == list(range(MESSAGES))
    assert all(list(map(int, mine)) == sorted(map(int, mine)) for mine in got)


def test_pipelined_pops_get_one_message_each(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    large = [bytes([number]) * MAX_PAYLOAD_BYTES for number in range(4)]
    with RawShard(port) as shard:
        for payload in large:
            shard.push(payload)
        shard.send(encode(0, Method.POP, 0) * 5)
        assert [shard.receive().payload for _ in range(4)] == large
        assert shard.receive().status == Status.ENODATA


def test_kafka_clients_read_pushed_messages(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard:
        shard.push(b"one")
        shard.push(b"two")
    with Consumer(served.servers) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        records = consumer.poll(10, timeout_ms=5000)
    assert [record.value for record in records] == [b"one", b"two"]
    assert [record.headers for record in records] == [
        ((SEQUENCE_HEADER, bytes(8)),),
        ((SEQUENCE_HEADER, bytes(7) + b"\x01"),),
    ]


def test_records_of_kafka_clients_are_popped_in_log_order(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard, Producer(served.servers) as producer:
        shard.push(b"a")
        shard.push(b"b")
        producer.send(topic, b"from Kafka").result()
        producer.send(topic, None).result()
        shard.push(b"c")
        popped = [shard.pop() for _ in range(5)]
    assert [one.payload for one in popped] == [b"a", b"b", b"from Kafka", b"", b"c"]
    # A record without a sequence id takes that of the message before it.
    assert [one.sequence_id for one in popped] == [0, 1, 1, 1, 2]


def test_a_message_that_is_too_large_for_dmqp_does_not_stop_the_others(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard, Producer(served.servers, compression="gzip", producer_max_bytes=1 << 22) as producer:
        producer.send(topic, bytes(MAX_PAYLOAD_BYTES + 1)).result()
        shard.push(b"after")
        assert shard.pop().status == Status.EMSGSIZE
        assert shard.pop().payload == b"after"


@pytest.mark.parametrize("is_read_ahead", [False, True])
def test_deleted_messages_are_skipped(served: DmqpBroker, topic: str, is_read_ahead: bool) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard:
        for number in range(5):
            shard.push(b"%d" % number)
        if is_read_ahead:
            assert shard.peek().sequence_id == 0
        deletion = {"partition": 0, "before_offset": 3}
        answer = served.client.post(f"/v1/topics/{topic}/delete-records", json=deletion)
        assert answer.status_code == 200, answer.text
        assert [shard.pop().payload, shard.pop().payload] == [b"3", b"4"]


def test_the_queues_lag_is_reported_as_group_lag(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard:
        for _ in range(3):
            shard.push(b"x")
        shard.pop()
    group = served.client.get(f"/v1/groups/__dmqp.{topic}").json()
    assert [(one["committed"], one["lag"]) for one in group["offsets"]] == [(1, 2)], group


def test_a_connection_accepted_while_its_port_is_closed_is_not_served(served: DmqpBroker, topic: str) -> None:
    served.exposed(topic)
    [listener] = served.server._topics[topic]._listeners
    assert served.client.delete(f"/v1/dmqp/{topic}").status_code == 200

    async def accepted() -> socket.socket:
        with socket.create_server(("127.0.0.1", 0)) as server:
            client = socket.create_connection(server.getsockname(), PATIENCE_S)
            late, _ = server.accept()
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: ShardConnection(listener._service, listener.shard), late)
        return client

    with served.run(accepted()) as client:
        client.sendall(encode(0, Method.POP, 0, b""))
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
