"""Produce with and without ACLs: both brokers require a login, and alternate in one run."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench.report import Row, against, percentile, speed
from bench.requests import IN_FLIGHT, connect, exchange, ottla, produce_frame, single_us
from ottla.broker.config import BrokerConfig
from ottla.broker.security.users import add_user_offline
from ottla.broker.settings import Settings
from ottla.client.sasl import Scram
from ottla.core.security import AclOperation, AclPermission, PatternType, ResourceType
from ottla.wire.codec import decode_response, encode_request
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

ROUNDS = 6
SLICE_S = 1.0
"""Each case lasts for ROUNDS slices, which alternate between the two brokers."""
ACLS = 1000
_MECHANISM = "SCRAM-SHA-256"
_PRODUCE = ProduceRequest(acks=1, timeout_ms=1000, topic_data=())
_PASSWORDS = {"admin": "admin-secret", "ann": "ann-secret"}


def logged_in(port: int, user: str) -> socket.socket:
    connection = connect(port)
    exchange(connection, b"".join(encode_request(SaslHandshakeRequest(mechanism=_MECHANISM), 1, 1, "bench")))
    login = Scram(_MECHANISM, user, _PASSWORDS[user])
    message: bytes | None = login.begin()
    while message is not None:
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer = exchange(connection, b"".join(encode_request(request, 2, 1, "bench")))
        message = login.answer(decode_response(request, 2, 1, memoryview(answer)[4:]).auth_bytes)
    return connection


def grant(port: int) -> None:
    """Let ann create and write the topic, among many other ACLs."""
    names = ["bench", *(f"other-{number}" for number in range(ACLS - 1))]
    creations = tuple(
        AclCreation(
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            resource_pattern_type=PatternType.LITERAL,
            principal="User:ann",
            host="*",
            operation=operation,
            permission_type=AclPermission.ALLOW,
        )
        for name in names
        for operation in (AclOperation.WRITE, AclOperation.CREATE)
    )
    with logged_in(port, "admin") as admin:
        exchange(admin, b"".join(encode_request(CreateAclsRequest(creations=creations), 3, 1, "bench")))


def pipelined(connection: socket.socket, frame: bytes, answer_bytes: int) -> float:
    """Requests per second over a slice, with IN_FLIGHT of them under way."""
    window = frame * IN_FLIGHT
    began_s = time.perf_counter()
    count = 0
    while (spent_s := time.perf_counter() - began_s) < SLICE_S:
        connection.sendall(window)
        left = answer_bytes * IN_FLIGHT
        while left:
            left -= len(connection.recv(left))
        count += IN_FLIGHT
    return count / spent_s


def one_by_one(connection: socket.socket, frame: bytes) -> list[float]:
    times: list[float] = []
    ends_s = time.perf_counter() + SLICE_S
    while time.perf_counter() < ends_s:
        times += single_us(connection, frame, 200)
    return times


def brokers(stack: ExitStack) -> Iterator[socket.socket]:
    """A connection to a broker with ACLs, and one to a broker without."""
    for options in (("--set", "security.acls=true", "--set", "security.super_users=User:admin"), ()):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-bench-")))
        settings = Settings(broker=BrokerConfig(data_dir=folder / "data"))
        for user, password in _PASSWORDS.items():
            add_user_offline(settings, user, password, (_MECHANISM,))
        port = stack.enter_context(ottla(folder, "--listener", "SASL_PLAINTEXT://127.0.0.1:0", *options, port=()))
        if options:
            grant(port)
        yield stack.enter_context(logged_in(port, "ann"))


def rows() -> Iterator[Row]:
    frame = produce_frame()
    topic = MetadataRequest(topics=(MetadataRequestTopic(name="bench"),))
    with ExitStack() as stack:
        connections = list(brokers(stack))
        for each in connections:
            exchange(each, b"".join(encode_request(topic, 9, 1, "bench")))
        answers = [exchange(each, frame) for each in connections]
        for answer in answers:
            accepted = decode_response(_PRODUCE, 9, 1, memoryview(answer)[4:])
            assert accepted.responses[0].partition_responses[0].error_code == 0
        answer_bytes = len(answers[0])
        times: tuple[list[float], list[float]] = ([], [])
        medians: tuple[list[float], list[float]] = ([], [])
        rates: tuple[list[float], list[float]] = ([], [])
        for number in range(ROUNDS):
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                round_us = one_by_one(connections[side], frame)
                times[side].extend(round_us)
                medians[side].append(percentile(sorted(round_us), 0.5))
                rates[side].append(pipelined(connections[side], frame, answer_bytes))
    with_acls, without = (percentile(sorted(each), 0.5) for each in times)
    name = f"one produce of 1 KiB with {2 * ACLS} ACLs, p50, against no ACLs"
    yield replace(against(name, with_acls, without, at_most=1.1), spread=spread(*medians))
    fast, plain = (sorted(each)[ROUNDS // 2] / 1000 for each in rates)
    name = f"produce of 1 KiB with {2 * ACLS} ACLs, {IN_FLIGHT} in flight, against no ACLs"
    yield replace(speed(name, fast, plain, "k/s", at_least=0.95), spread=spread(*rates))


def spread(ours: list[float], theirs: list[float]) -> str:
    """The range of the ratio over all rounds."""
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"
