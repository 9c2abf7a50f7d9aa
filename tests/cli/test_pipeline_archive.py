"""`ottla pipeline archive`, as a program."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla import Producer
from ottla.broker.embedded import EmbeddedBroker

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


def test_it_follows_a_topic_until_it_is_told_to_stop(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--every", "soon"], "'soon' is no time such as 30s, 5m, 12h or 7d"),
        (["--trim-topic", "-1s"], "'-1s' is no time such as"),
    ],
)
def test_a_wrong_option_is_one_sentence(tmp_path: Path, options: list[str], said: str) -> None:
    ended = subprocess.run(command("localhost:1", tmp_path, *options), capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
