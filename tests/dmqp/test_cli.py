"""`ottla dmqp`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner, Result

from ottla.cli.main import program

if TYPE_CHECKING:
    from .serving import DmqpBroker


def run(served: DmqpBroker | None, *arguments: str, told: bytes | None = None) -> Result:
    http = "127.0.0.1:1" if served is None else served.bootstrap
    return CliRunner(env={"OTTLA_HTTP": http}).invoke(program, ["dmqp", *arguments], input=told)


def test_a_topic_is_exposed_pushed_to_popped_from_and_unexposed(served: DmqpBroker, topic: str) -> None:
    assert served.client.post("/v1/topics", json={"name": topic, "partitions": 2}).status_code == 201
    exposed = run(served, "expose", topic)
    assert exposed.exit_code == 0, exposed.stderr
    heading, *lines = exposed.stdout.splitlines()
    assert heading.split() == ["TOPIC", "SHARD", "HOST", "PORT", "TLS", "CONSUMER"]
    assert [line.split()[:3] for line in lines] == [[topic, "0", "127.0.0.1"], [topic, "1", "127.0.0.1"]]
    pushed = run(served, "push", topic, "one", "two")
    assert (pushed.exit_code, pushed.stderr) == (0, f"2 messages pushed to {topic}\n")
    run(served, "push", topic, told=b"three\r\n\xff\n")
    assert run(served, "peek", topic).stdout == "0\n"
    assert run(served, "pop", topic).stdout == "one\n"
    assert run(served, "pop", topic, "--all").stdout_bytes == b"two\nthree\n\xff\n"
    assert run(served, "peek", topic).stdout == "empty\n"
    listed = json.loads(run(served, "list", "-o", "json").stdout)
    assert [row["shard"] for row in listed if row["topic"] == topic] == [0, 1]
    assert run(served, "unexpose", topic).stdout == f"{topic} is no longer served over DMQP\n"
    assert run(served, "pop", topic).stderr == f"ottla: topic '{topic}' is not exposed over DMQP\n"


def test_the_ports_can_be_chosen(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    assert run(served, "unexpose", topic).exit_code == 0
    again = run(served, "expose", topic, "--port", str(port), "-o", "json")
    assert [row["port"] for row in json.loads(again.stdout)] == [port]
    taken = run(served, "expose", topic, "--port", str(served.http.address.port))
    assert taken.exit_code == 1
    assert "could not serve" in taken.stderr
    # The port does not change.
    assert [shard["port"] for shard in served.client.get(f"/v1/dmqp/{topic}").json()["shards"]] == [port]


def test_errors_are_one_line(served: DmqpBroker) -> None:
    assert "no topic 'none'" in run(served, "expose", "none").stderr
    nowhere = run(None, "list")
    assert (nowhere.exit_code, nowhere.stderr.count("\n")) == (1, 1)
    assert run(served, "list", "--http", "nonsense").exit_code == 2
