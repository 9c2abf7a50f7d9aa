"""Workers and supervisors that stop or crash."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from click.testing import CliRunner
from confluent_kafka import Producer

from ottla.cli.main import program

from .serving import PATIENCE_S, consume, create, is_running, leaders, produce, serve, until, workers_of

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka import KafkaError, Message


class Load:
    """An idempotent producer that writes numbers to all partitions until it is told to end."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.acknowledged: set[str] = set()
        self.failures: list[str] = []
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1})
        self._topic = topic
        self._partitions = partitions
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(0.001):
            self._producer.produce(
                self._topic, value=str(number), partition=number % self._partitions, on_delivery=self._delivered
            )
            self._producer.poll(0)
            number += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert value is not None
        if error is None:
            self.acknowledged.add(value.decode())
        else:
            self.failures.append(str(error))

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0


def test_a_killed_worker_is_restarted_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        create(served.address, "t", 4)
        load = Load(served.address, "t", 4)
        for number in (0, 1):
            so_far = len(load.acknowledged)
            until(lambda: len(load.acknowledged) > so_far + 100)  # noqa: B023 - waited for at once
            os.kill(workers_of(served)[number]["pid"], signal.SIGKILL)
        so_far = len(load.acknowledged)
        until(lambda: len(load.acknowledged) > so_far + 100)
        load.end()

        values = consume(served.address, "t", len(load.acknowledged))

        assert load.failures == []
        assert len(values) == len(set(values)), "a record is there twice"
        assert set(values) == load.acknowledged
        assert sorted(leaders(served.address, "t")) == [0, 0, 1, 1]
        assert served.terminate() == 0
        said = served.output()[1]
        assert said.count("exited (by SIGKILL), restarting it") == 2


def test_a_clean_stop_ends_every_worker_and_the_next_start_has_everything(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        create(served.address, "t", 2)
        produce(served.address, "t", ["a", "b", "c"])
        assert consume(served.address, "t", 3) != []
        pids = [worker["pid"] for worker in workers_of(served)]
        assert served.terminate() == 0
        assert not any(is_running(pid) for pid in pids)
        assert served.output()[1] == ""
        for number in (0, 1):
            assert (served.data_dir / f"worker-{number}" / ".kafka_cleanshutdown").exists()

    with serve(tmp_path) as served:
        produce(served.address, "t", ["d"])
        assert consume(served.address, "t", 1) == ["d"], "the group has its offsets"
        assert sorted(consume(served.address, "t", 4, "another")) == ["a", "b", "c", "d"]


def test_workers_end_with_their_supervisor_and_another_can_be_started_at_once(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        create(served.address, "t", 2)
        produce(served.address, "t", ["a", "b"])
        pids = [worker["pid"] for worker in workers_of(served)]
        served.process.kill()

        with serve(tmp_path) as again:
            until(lambda: not any(is_running(pid) for pid in pids))
            assert sorted(consume(again.address, "t", 2)) == ["a", "b"]


def test_fewer_workers_are_refused_until_the_others_are_drained(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        create(served.address, "t", 4)
        produce(served.address, "t", [str(number) for number in range(20)])
        assert served.terminate() == 0

    fewer = serve(tmp_path, 1)
    assert fewer.start().wait(PATIENCE_S) == 1
    said = fewer.output()[1]
    assert "worker 1" in said
    assert "ottla cluster drain 1" in said

    with serve(tmp_path, 3) as served:
        drained = CliRunner().invoke(program, ["cluster", "drain", "1", "2", "--yes", "-b", served.address])
        assert drained.exit_code == 0, drained.output
        assert leaders(served.address, "t") == [0, 0, 0, 0]
        assert served.terminate() == 0

    with serve(tmp_path, 1) as served:
        assert len(consume(served.address, "t", 20)) == 20


def test_a_port_in_use_is_reported_at_once_and_no_worker_is_left(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    with serve(tmp_path / "first", 1) as served:
        second = serve(tmp_path / "second", 2, "--port", served.address.rpartition(":")[2])
        assert second.start().wait(PATIENCE_S) == 1
        assert f"cannot listen on {served.address}: Address already in use" in second.output()[1]
