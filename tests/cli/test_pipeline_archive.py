"""`ottla pipeline archive`, as a program."""

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.broker.embedded import EmbeddedBroker
from ottla.core.pipeline_status import PIPELINES_TOPIC, PipelineStatus

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'ottla[arrow]'")


def command(servers: str, folder: Path, *options: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "ottla",
        "pipeline",
        "archive",
        "orders",
        "--to",
        str(folder),
        "-b",
        servers,
        *options,
    ]


def write(servers: str, *values: bytes) -> None:
    with Producer(servers) as producer:
        for value in values:
            producer.send("orders", value)


def statuses(servers: str) -> list[PipelineStatus]:
    """All pipeline status records so far."""
    told: list[PipelineStatus] = []
    with Consumer(servers, [PIPELINES_TOPIC], auto_offset_reset="earliest") as consumer:
        while records := consumer.poll(timeout_ms=500):
            told += [msgspec.json.decode(record.value, type=PipelineStatus) for record in records]
    return told


def test_it_follows_a_topic_until_stopped(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        write(broker.bootstrap_servers, b"1", b"2")
        following = command(broker.bootstrap_servers, tmp_path, "--every", "10ms")
        with subprocess.Popen(following, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == "orders: 2 records archived in 1 piece; the archive ends at 0: 2\n"
            write(broker.bootstrap_servers, b"3")
            assert program.stdout.readline() == "orders: 1 record archived in 1 piece; the archive ends at 0: 3\n"
            once = subprocess.run(
                command(broker.bootstrap_servers, tmp_path), capture_output=True, text=True, check=False
            )
            assert (once.returncode, once.stderr) == (
                1,
                f"ottla: another process is archiving to {tmp_path / 'orders'}\n",
            )
            program.send_signal(signal.SIGTERM)
            assert program.wait(30) == 0
        last = statuses(broker.bootstrap_servers)[-1]
        assert (last.name, last.state, last.queries[0].rows) == ("archive-orders", "stopped", 3)


def test_it_survives_a_broker_restart(tmp_path: Path) -> None:
    data, archive = tmp_path / "data", tmp_path / "archive"
    first = EmbeddedBroker(data)
    with first:
        servers, settings = first.bootstrap_servers, first.broker.settings
        write(servers, b"1")
        following = command(servers, archive, "--every", "10ms")
        program = subprocess.Popen(following, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stdout.readline().startswith("orders: 1 record archived")
    # Other warnings may come first, since the status could not be reported either.
    assert any(line.endswith("trying again\n") for line in program.stderr)
    again = settings._replace(net=replace(settings.net, port=int(servers.rpartition(":")[2])))
    with EmbeddedBroker(data, again), program:
        write(servers, b"2")
        assert program.stdout.readline() == "orders: 1 record archived in 1 piece; the archive ends at 0: 2\n"
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 0


def test_the_error_that_stopped_it_is_reported(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        write(broker.bootstrap_servers, b"1")
        subprocess.run(command(broker.bootstrap_servers, tmp_path), check=True)
        write(broker.bootstrap_servers, b"2", b"3")
        with Admin(broker.bootstrap_servers) as admin:
            admin.delete_records({TopicPartition("orders", 0): 2})
        ended = subprocess.run(command(broker.bootstrap_servers, tmp_path), capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        last = statuses(broker.bootstrap_servers)[-1]
        assert last.state == "failed"
        assert last.error in ended.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--every", "soon"], "invalid duration 'soon' (use e.g. 30s, 5m, 12h, 7d)"),
        (["--trim-topic", "-1s"], "invalid duration '-1s'"),
    ],
)
def test_an_invalid_option_is_a_one_line_error(tmp_path: Path, options: list[str], said: str) -> None:
    ended = subprocess.run(command("localhost:1", tmp_path, *options), capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
