"""The client: order across shards, distribution of shards, named errors."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from ottla.dmqp import (
    Client,
    DmqpError,
    InvalidSequence,
    MessageTooLarge,
    NotReached,
    Refused,
    TooManyConsumers,
    TopicExists,
)
from ottla.dmqp.frame import MAX_PAYLOAD_BYTES

from .serving import DmqpBroker

if TYPE_CHECKING:
    from pathlib import Path


def test_messages_are_pushed_by_turns_and_popped_in_order(served: DmqpBroker, topic: str) -> None:
    with Client(served.bootstrap) as client:
        client.create_topic(topic, shards=3, replication_factor=1)
        assert [client.push(topic, b"%d" % number) for number in range(9)] == list(range(9))
        assert client.peek(topic) == 0
        messages = [client.pop(topic) for _ in range(9)]
        assert [message.sequence_id for message in messages if message] == list(range(9))
        assert [message.shard for message in messages if message] == [0, 1, 2] * 3
        assert client.pop(topic) is None
        assert client.peek(topic) is None
        # Messages after the end are in order, too.
        assert [client.push(topic, b"x") for _ in range(2)] == [9, 10]
        assert [message.sequence_id for message in (client.pop(topic), client.pop(topic)) if message] == [9, 10]


def test_consumers_share_the_shards_and_together_get_everything(served: DmqpBroker, topic: str) -> None:
    with Client(served.bootstrap, consumer="ann") as ann, Client(served.bootstrap, consumer="bob") as bob:
        ann.create_topic(topic, shards=3)
        assert ann.shards(topic) == [0, 1, 2]
        assert bob.shards(topic) == [1]
        with Client(served.bootstrap) as pusher:
            for number in range(60):
                pusher.push(topic, b"%d" % number)
        got: dict[str, list[int]] = {"ann": [], "bob": []}

        def take(client: Client) -> None:
            while (message := client.pop(topic)) is not None:
                got[client.consumer].append(message.sequence_id)

        threads = [threading.Thread(target=take, args=(client,)) for client in (ann, bob)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(got["ann"] + got["bob"]) == list(range(60))
    assert got["bob"] == sorted(got["bob"])


def test_a_consumer_without_a_shard_is_refused_until_another_leaves(served: DmqpBroker, topic: str) -> None:
    with Client(served.bootstrap) as eve:
        with Client(served.bootstrap) as ann:
            ann.create_topic(topic)
            ann.push(topic, b"x")
            assert ann.peek(topic) == 0
            with pytest.raises(TooManyConsumers):
                eve.pop(topic)
        message = eve.pop(topic)
        assert message is not None
        assert message.data == b"x"


def test_leases_are_seen_in_the_map(served: DmqpBroker, topic: str) -> None:
    with Client(served.bootstrap, consumer="ann") as ann:
        ann.create_topic(topic, shards=2)
        ann.pop(topic)
        answer = served.client.get(f"/v1/dmqp/{topic}").json()
        assert answer["consumers"] == [{"consumer": "ann", "shards": [0, 1]}]
    assert served.client.get(f"/v1/dmqp/{topic}").json()["consumers"] == []


def test_a_sequence_id_can_be_required(served: DmqpBroker, topic: str) -> None:
    with Client(served.bootstrap) as client:
        client.create_topic(topic, shards=2)
        client.push(topic, b"0")
        assert client.push(topic, b"1", sequence_id=1) == 1
        with pytest.raises(InvalidSequence) as refused:
            client.push(topic, b"5", sequence_id=5)
        assert refused.value.errno == 22


def test_errors_have_names(served: DmqpBroker, topic: str) -> None:
    with Client(served.bootstrap) as client:
        with pytest.raises(Refused, match="not exposed"):
            client.push(topic, b"x")
        client.create_topic(topic)
        with pytest.raises(TopicExists):
            client.create_topic(topic)
        with pytest.raises(MessageTooLarge):
            client.push(topic, bytes(MAX_PAYLOAD_BYTES + 1))
        assert client.push(topic, bytes(MAX_PAYLOAD_BYTES)) == 0
    with Client("127.0.0.1:1") as nowhere, pytest.raises(NotReached):
        nowhere.pop(topic)
    with pytest.raises(ValueError, match="bootstrap"):
        Client("no port")
    assert issubclass(TooManyConsumers, DmqpError)


def test_the_client_follows_moved_shards(served: DmqpBroker, topic: str) -> None:
    with Client(served.bootstrap) as client:
        client.create_topic(topic)
        client.push(topic, b"before")
        assert served.client.delete(f"/v1/dmqp/{topic}").status_code == 200
        assert served.client.post(f"/v1/dmqp/{topic}", json={"ports": [0]}).status_code == 200
        # The connection was closed, which the client notices before using it; the port has changed.
        assert client.push(topic, b"after") == 1


def test_an_idle_connection_is_reopened(tmp_path: Path, topic: str) -> None:
    with DmqpBroker(tmp_path) as served, Client(served.bootstrap) as client:
        client.create_topic(topic)
        client.push(topic, b"x")
        served.run(_hang_up_on_all(served))
        assert client.push(topic, b"y") == 1


async def _hang_up_on_all(served: DmqpBroker) -> None:
    for connection in list(served.server._service.connections):
        connection.finish()
        await connection.gone
