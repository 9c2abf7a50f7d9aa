"""A broker in a container: with a stand-in for Docker, and with Docker itself where it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import httpx
import pytest
from confluent_kafka import Producer

import ottla
from ottla.testing.container import OttlaContainer

ROOT = Path(__file__).parents[2]
FAKE = Path(__file__).with_name("fake_docker.py")


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program that is used like Docker."""
    monkeypatch.setenv("PYTHONPATH", str(Path(ottla.__file__).parents[1]))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    program = tmp_path / "docker"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    program.chmod(0o700)
    return str(program)


def test_clients_get_the_mapped_port(docker: str, tmp_path: Path) -> None:
    with OttlaContainer(docker=docker, enable_faults=True, settings={"broker.default_partitions": "3"}) as container:
        producer = Producer({"bootstrap.servers": container.get_bootstrap_server(), "log_level": 0})
        described = producer.list_topics(timeout=20)
        [broker] = described.brokers.values()
        assert f"{broker.host}:{broker.port}" == container.get_bootstrap_server()
        producer.produce("t", b"x")
        assert producer.flush(20) == 0
        assert len(producer.list_topics("t", timeout=20).topics["t"].partitions) == 3
        assert httpx.get(f"{container.get_rest_url()}/v1/faults").json() == {"faults": []}
        assert "ottla is ready" in container.get_logs()
    container.stop()
    assert [one.name for one in tmp_path.glob("fake-docker-*")] == []


def test_a_container_that_exits_at_once_is_reported(docker: str) -> None:
    container = OttlaContainer(docker=docker, settings={"broker.nonsense": "1"})
    with pytest.raises(RuntimeError, match=r"(?s)has ended:.*OTTLA_BROKER_NONSENSE"):
        container.start()


def test_docker_errors_are_reported(docker: str) -> None:
    with pytest.raises(RuntimeError, match="docker run failed: Unable to find image"):
        OttlaContainer("missing", docker=docker).start()


def test_a_missing_docker_is_reported() -> None:
    with pytest.raises(RuntimeError, match="program 'no-such-docker' not found"):
        OttlaContainer(docker="no-such-docker").start()


def test_the_image_serves() -> None:
    """The real thing: builds the image, which takes minutes, so only where it is asked for."""
    if "TEST_DOCKER" not in os.environ:
        pytest.skip("set TEST_DOCKER to build the image, which takes minutes and the network")
    if which("docker") is None:
        pytest.skip("there is no program docker")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("the Docker daemon does not answer")
    subprocess.run(["docker", "build", "--tag", "ottla:tested", str(ROOT)], check=True)
    with OttlaContainer("ottla:tested") as container:
        producer = Producer({"bootstrap.servers": container.get_bootstrap_server(), "log_level": 0})
        producer.produce("t", b"x")
        assert producer.flush(20) == 0


def test_the_files_of_the_image_exist() -> None:
    """What the Dockerfile copies exists, and the settings it names do too."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert sorted(copied) == sorted(kept)
    assert all((ROOT / name).exists() for name in copied)
    [variables] = [line for line in lines if line.startswith("ENV")]
    assert "OTTLA_NET_HOST=0.0.0.0" in variables
    assert "OTTLA_BROKER_DATA_DIR=/data" in variables
