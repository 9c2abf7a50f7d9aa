"""The first metadata response of a starting cluster is correct."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.broker.raw_client import RawClient
from tests.cli.serving import Serve

from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.wire.declare import Request

PATIENCE_S = 30.0
QUESTIONS = [MetadataRequest(topics=()), DescribeClusterRequest(include_cluster_authorized_operations=False)]


def connect_early(port: int) -> RawClient:
    """Connect as soon as the port is open, before the broker reports that it is ready."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return RawClient(f"127.0.0.1:{port}", timeout_s=PATIENCE_S)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline


def ask_early(serve: Serve, port: int, question: Request) -> tuple[int, int]:
    """The controller and the number of brokers in the first response."""
    serve.start()
    try:
        with connect_early(port) as client:
            answer = client.ask(question)  # type: ignore[type-var, var-annotated]
            return answer.controller_id, len(answer.brokers)  # type: ignore[attr-defined]
    finally:
        serve.terminate()
        serve.output()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.API.name)
def test_workers_list_all_workers_and_a_controller(tmp_path: Path, question: Request) -> None:
    port = free_ports(3)  # the shared one, and those of the workers
    serve = Serve(tmp_path, "--workers", "2", "--port", str(port))
    controller, brokers = ask_early(serve, port, question)
    assert controller in (0, 1)
    assert brokers == 2


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.API.name)
def test_a_zookeeper_node_lists_itself_and_a_controller(tmp_path: Path, zookeeper: str, question: Request) -> None:
    port = free_ports(1)
    serve = Serve(tmp_path, "--zookeeper", zookeeper, "--node-id", "7", "--port", str(port))
    assert ask_early(serve, port, question) == (7, 1)


def free_ports(count: int) -> int:
    """The first of several consecutive free ports."""
    while True:
        with ExitStack() as held:
            try:
                first = held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
                for port in range(first + 1, first + count):
                    held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return int(first)
