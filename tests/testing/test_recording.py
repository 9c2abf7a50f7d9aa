"""Record a part of a topic to a file, and replay it unchanged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import ottla as package
from ottla.cli.main import program
from ottla.core.errors import ConfigError
from ottla.testing.recording import Recorded, due_after_s, read_head, read_records

from .clients import producer

if TYPE_CHECKING:
    from click.testing import Result

    from ottla.testing import EphemeralBroker


def cli(broker: EphemeralBroker, *arguments: str) -> Result:
    done = CliRunner().invoke(program, [*arguments, "--broker", broker.bootstrap_servers], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def content(broker: EphemeralBroker, topic: str) -> list[tuple[object, ...]]:
    return [(one.partition, one.timestamp, one.key, one.value, one.headers) for one in broker.records(topic)]


@pytest.fixture
def recording(ottla: EphemeralBroker, tmp_path: Path) -> Path:
    ottla.clock.freeze()
    ottla.create_topic("orders", partitions=3)
    ottla.produce("orders", b"\xff\x00", key="k", partition=1, headers=(("h", None), ("h", b"\xfe")))
    ottla.clock.advance(10)
    ottla.produce("orders", None, key="k", partition=0)
    ottla.clock.advance(10)
    ottla.produce("orders", "last", partition=1)
    file = tmp_path / "orders.rec"
    said = cli(ottla, "record", "orders", str(file)).stderr
    assert said == f"3 messages of orders written to {file}\n"
    return file


def test_recorded_messages_are_in_timestamp_order(recording: Path) -> None:
    assert read_head(recording).partitions == 3
    assert [(one.partition, one.offset) for one in read_records(recording)] == [(1, 0), (0, 0), (1, 1)]


def test_a_recording_is_replayed_unchanged(ottla: EphemeralBroker, recording: Path) -> None:
    said = cli(ottla, "replay", str(recording), "--to", "again").stderr
    assert said == "3 messages written to again\n"
    assert content(ottla, "again") == content(ottla, "orders")
    assert len(ottla.broker.topics.by_name["again"].partitions) == 3


def test_a_test_can_replay_it(ottla: EphemeralBroker, recording: Path) -> None:
    assert ottla.replay(recording, "again") == 3
    assert content(ottla, "again") == content(ottla, "orders")
    assert ottla.replay(str(recording)) == 3
    assert len(ottla.records("orders")) == 6


def test_aborted_messages_are_not_recorded(ottla: EphemeralBroker, tmp_path: Path) -> None:
    client = producer(ottla, **{"transactional.id": "shop"})
    client.init_transactions(20)
    for value, end in ((b"kept", client.commit_transaction), (b"aborted", client.abort_transaction)):
        client.begin_transaction()
        client.produce("orders", value)
        assert client.flush(20) == 0
        end(20)
    cli(ottla, "record", "orders", str(tmp_path / "orders.rec"))
    assert [one.value for one in read_records(tmp_path / "orders.rec")] == [b"kept"]


def test_only_a_slice_is_recorded(ottla: EphemeralBroker, recording: Path) -> None:
    ottla.produce("few", "a", "b", "c", "d")
    cli(ottla, "record", "few", str(recording), "--from", "1", "-n", "2")
    assert [one.value for one in read_records(recording)] == [b"b", b"c"]


def test_an_interrupted_recording_leaves_no_file(ottla: EphemeralBroker, tmp_path: Path) -> None:
    ottla.produce("orders", "a")
    held = ottla.faults.pause(api="Fetch")
    command = [sys.executable, "-m", "ottla", "record", "orders", "orders.rec", "--broker", ottla.bootstrap_servers]
    environment = os.environ | {"PYTHONPATH": str(Path(package.__file__).parents[1])}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as process:
        held.wait()
        assert [one.name for one in tmp_path.iterdir()] == ["orders.rec.tmp"]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0
    assert list(tmp_path.iterdir()) == []


def test_time_between_messages_is_kept_when_asked_for(ottla: EphemeralBroker, recording: Path) -> None:
    began_s = monotonic()
    cli(ottla, "replay", str(recording), "--to", "again", "--speed", "100")
    assert monotonic() - began_s >= 0.2  # of the 20 seconds between the first and the last
    assert content(ottla, "again") == content(ottla, "orders")


@pytest.mark.parametrize(("speed", "due_s"), [(0, 0), (1, 20), (10, 2), (0.5, 40)])
def test_speed_scales_the_time_since_the_first_message(speed: float, due_s: float) -> None:
    first, later = (Recorded(0, 0, at_ms, None, None) for at_ms in (1000, 21_000))
    assert due_after_s(later, first, speed) == due_s
    assert due_after_s(first, later, speed) == 0


def test_a_file_that_is_not_a_recording_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.txt"
    file.write_text("two coffees\n")
    with pytest.raises(ConfigError, match=r"other.txt is not a valid recording"):
        read_head(file)
    file.write_text('{"topic": "t", "partitions": 1}\n[0, 0, "x"]\n')
    with pytest.raises(ConfigError, match=r"other.txt, line 2"):
        list(read_records(file))
