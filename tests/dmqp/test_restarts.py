"""State after a stop and after a kill."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.cli.serving import Serve

from ottla import Producer
from ottla.dmqp import Client
from ottla.dmqp.exposures import EXPOSURES_FILE
from ottla.dmqp.frame import Status

from .serving import DmqpBroker, RawShard

if TYPE_CHECKING:
    from pathlib import Path

HTTP = ("--http-port", "0")
POPPERS = 3


def ports_of(served: DmqpBroker, topic: str) -> list[int]:
    return [shard["port"] for shard in served.client.get(f"/v1/dmqp/{topic}").json()["shards"]]


def test_exposed_topics_keep_their_ports_after_a_restart(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path) as served:
        ports = served.exposed("jobs", shards=2)
        with RawShard(ports[0]) as shard:
            shard.push(b"first")
            shard.push(b"second")
            assert shard.pop().payload == b"first"
    with DmqpBroker(tmp_path) as served:
        assert ports_of(served, "jobs") == ports
        with RawShard(ports[0]) as shard:
            assert shard.push(b"third").sequence_id == 2
            assert [shard.pop().payload for _ in range(2)] == [b"second", b"third"]


@pytest.mark.parametrize("is_unexposed", [False, True])
def test_the_counter_is_recovered_after_records_of_kafka_clients(tmp_path: Path, is_unexposed: bool) -> None:
    with DmqpBroker(tmp_path) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as shard, Producer(served.servers) as producer:
            assert [shard.push(b"ours").sequence_id for _ in range(3)] == [0, 1, 2]
            for _ in range(100):
                producer.send("jobs", b"theirs")
            producer.flush()
        if is_unexposed:
            assert served.client.delete("/v1/dmqp/jobs").status_code == 200
            assert served.client.get("/v1/dmqp/jobs").status_code == 404
    with DmqpBroker(tmp_path) as served:
        [port] = [one["port"] for one in served.client.post("/v1/dmqp/jobs", json={}).json()["shards"]]
        with RawShard(port) as shard:
            assert shard.push(b"ours").sequence_id == 3
            assert [shard.pop().payload for _ in range(3)] == [b"ours"] * 3


def test_a_port_taken_by_another_process_is_replaced(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path) as served:
        [port] = served.exposed("jobs")
    with DmqpBroker(tmp_path / "other") as taker:
        assert taker.client.post("/v1/topics", json={"name": "jobs"}).status_code == 201
        assert taker.client.post("/v1/dmqp/jobs", json={"ports": [port]}).status_code == 200
        with DmqpBroker(tmp_path) as served:
            [other] = ports_of(served, "jobs")
            assert other != port
            with RawShard(other) as shard:
                assert shard.push(b"here").status == Status.OK


def test_a_deleted_topic_is_not_exposed_again(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as shard:
            shard.push(b"x")
            assert served.client.delete("/v1/topics/jobs").status_code == 200
            assert shard.is_closed()
        assert served.client.post("/v1/topics", json={"name": "jobs"}).status_code == 201
        assert served.client.get("/v1/dmqp").json() == {"topics": []}
    with DmqpBroker(tmp_path) as served:
        assert served.client.get("/v1/dmqp").json() == {"topics": []}


def test_a_kill_between_push_and_pop_neither_loses_nor_duplicates(tmp_path: Path) -> None:
    with Serve(tmp_path, *HTTP) as serve, Client(serve.ready["http"]) as client:
        client.create_topic("jobs", shards=2)
        pushed = [client.push("jobs", b"%d" % number) for number in range(20)]
        assert pushed == list(range(20))
        first = [client.pop("jobs") for _ in range(7)]
        serve.process.kill()
        serve.process.wait()
    assert (tmp_path / "data" / EXPOSURES_FILE).exists()
    with Serve(tmp_path, *HTTP) as serve, Client(serve.ready["http"]) as client:
        assert client.push("jobs", b"20") == 20
        second = []
        while (message := client.pop("jobs")) is not None:
            second.append(message)
        assert serve.terminate() == 0
    got = [message for message in [*first, *second] if message is not None]
    assert [message.sequence_id for message in got] == list(range(21))
    assert [message.data for message in got] == [b"%d" % number for number in range(21)]


def test_every_message_acknowledged_before_a_kill_is_delivered_once(tmp_path: Path) -> None:
    pushed: list[bytes] = []
    popped: list[bytes] = []
    kill_after = 300

    def push(port: int, who: int) -> None:
        with suppress(OSError, AssertionError), RawShard(port) as shard:
            for number in count():
                payload = b"%d-%d" % (who, number)
                assert shard.push(payload).status == Status.OK
                pushed.append(payload)

    def pop(port: int) -> None:
        with suppress(OSError, AssertionError), RawShard(port) as shard:
            while True:
                reply = shard.pop()
                if reply.status == Status.OK:
                    popped.append(reply.payload)
                    if len(popped) == kill_after:
                        serve.process.kill()

    with Serve(tmp_path, *HTTP) as serve:
        with Client(serve.ready["http"]) as client:
            client.create_topic("jobs")
        [place] = httpx.get(f"http://{serve.ready['http']}/v1/dmqp/jobs").json()["shards"]
        threads = [threading.Thread(target=push, args=(place["port"], who)) for who in range(3)]
        threads += [threading.Thread(target=pop, args=(place["port"],)) for _ in range(POPPERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with Serve(tmp_path, *HTTP) as serve, Client(serve.ready["http"]) as client:
        while (message := client.pop("jobs")) is not None:
            popped.append(message.data)
    assert len(popped) == len(set(popped))
    # A pop whose reply was in flight at the kill has consumed its message.
    assert len(set(pushed) - set(popped)) <= POPPERS
    assert len(pushed) >= kill_after


def test_a_kill_during_concurrent_pops_duplicates_nothing(tmp_path: Path) -> None:
    with Serve(tmp_path, *HTTP) as serve:
        with Client(serve.ready["http"]) as client:
            client.create_topic("jobs")
            for number in range(50):
                client.push("jobs", b"%d" % number)
        place = httpx.get(f"http://{serve.ready['http']}/v1/dmqp/jobs").json()["shards"][0]
        with RawShard(place["port"]) as left, RawShard(place["port"]) as right:
            left.send(bytes.fromhex("00000000 00000000 0001 0000") * 20)
            right.send(bytes.fromhex("00000000 00000000 0001 0000") * 20)
            before = [left.receive().payload for _ in range(5)] + [right.receive().payload for _ in range(5)]
            serve.process.kill()
            serve.process.wait()
    with Serve(tmp_path, *HTTP) as serve, Client(serve.ready["http"]) as client:
        after = []
        while (message := client.pop("jobs")) is not None:
            after.append(message.data)
    assert len(set(before)) == 10
    assert not set(before) & set(after)
    assert after == [b"%d" % number for number in range(50 - len(after), 50)]
    assert len(after) >= 10


def test_a_damaged_file_of_exposed_topics_is_an_error(tmp_path: Path) -> None:
    with Serve(tmp_path, *HTTP) as serve:
        assert serve.terminate() == 0
    (tmp_path / "data" / EXPOSURES_FILE).write_text("[{")
    damaged = Serve(tmp_path, *HTTP)
    process = damaged.start()
    _, told = damaged.output()
    assert process.returncode == 1
    assert EXPOSURES_FILE in told
