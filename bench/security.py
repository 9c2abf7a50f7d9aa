"""What security costs: TLS, logins and ACLs against plain text, on listeners of one broker in one run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from timeit import repeat
from types import SimpleNamespace
from typing import Any

import msgspec
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.security.certificates import Authority

from bench.report import Row, against, speed
from bench.requests import connect, exchange, produce_frame
from ottla.broker.authorization.authorizer import Authorizer
from ottla.broker.broker import Settings
from ottla.broker.config import BrokerConfig
from ottla.broker.context import Context
from ottla.broker.security.users import add_user_offline
from ottla.net.security_config import SecurityConfig
from ottla.storage.catalog.entries import Acl, AclOperation, AclPermission, PatternType, ResourceType
from ottla.wire.apis import PRODUCE
from ottla.wire.header import RequestHeader

RECORDS = 60_000
VALUE = bytes(1024)
ROUNDS = 5
REQUESTS = 5_000
LOOKUPS = 200_000
PASSWORD = "bench"  # noqa: S105 - of a broker that lives for a minute
CONFIG = """
[[net.listeners]]
protocol = "PLAINTEXT"
port = 0

[[net.listeners]]
protocol = "SSL"
port = 0

[[net.listeners]]
protocol = "SASL_SSL"
port = 0

[security]
cert_file = "{cert}"
key_file = "{key}"
mechanisms = ["SCRAM-SHA-256"]
acls = {acls}
{more}
"""
SUPER = 'super_users = ["User:bench", "User:ANONYMOUS"]'


@contextmanager
def served(folder: Path, *, acls: bool) -> Iterator[tuple[dict[str, str], Path]]:
    """The addresses by protocol, and whom to trust."""
    folder.mkdir()
    authority = Authority(folder)
    server = authority.server()
    text = CONFIG.format(cert=server.cert, key=server.key, acls=str(acls).lower(), more=SUPER if acls else "")
    (folder / "ottla.toml").write_text(text)
    settings = Settings(broker=BrokerConfig(data_dir=folder / "data"))
    add_user_offline(settings, "bench", PASSWORD, ["SCRAM-SHA-256"])
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "ottla", "serve", "--config", str(folder / "ottla.toml"), "--http-port", "-1"]
    process = subprocess.Popen(
        [*command, "--data-dir", str(folder / "data"), "--ready-file", str(ready)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not ready.exists():
            time.sleep(0.005)
        addresses = msgspec.json.decode(ready.read_bytes())["listeners"]
        yield {one.split("://")[0]: one.split("://")[1] for one in addresses}, authority.cert
    finally:
        process.terminate()
        process.wait()


def client_config(protocol: str, address: str, authority: Path) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap.servers": address.replace("127.0.0.1", "localhost"),
        "security.protocol": protocol,
    }
    if protocol != "PLAINTEXT":
        config["ssl.ca.location"] = str(authority)
    if protocol.startswith("SASL"):
        config |= {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "bench", "sasl.password": PASSWORD}
    return config


def produced_per_s(config: dict[str, Any], topic: str) -> float:
    producer = Producer({**config, "linger.ms": 5, "queue.buffering.max.messages": RECORDS + 1})
    producer.list_topics(topic)
    began_s = time.perf_counter()
    for _ in range(RECORDS):
        producer.produce(topic, VALUE)
    assert producer.flush(120) == 0
    return RECORDS / (time.perf_counter() - began_s)


def consumed_per_s(config: dict[str, Any], topic: str) -> float:
    consumer = Consumer({**config, "group.id": f"{topic}-{time.time()}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    assert consumer.poll(30) is not None
    began_s = time.perf_counter()
    got = 0
    while got < RECORDS - 1:
        got += len(consumer.consume(5000, 1.0))
    spent_s = time.perf_counter() - began_s
    consumer.close()
    return got / spent_s


def throughput() -> Iterator[Row]:
    produced: dict[str, list[float]] = {}
    consumed: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "b", acls=True) as (addresses, authority):
        configs = {protocol: client_config(protocol, where, authority) for protocol, where in addresses.items()}
        for number in range(ROUNDS):
            for protocol, config in configs.items():
                topic = f"{protocol}-{number}"
                admin = AdminClient(config)
                admin.create_topics([NewTopic(topic, 1)])[topic].result()
                produced.setdefault(protocol, []).append(produced_per_s(config, topic))
                consumed.setdefault(protocol, []).append(consumed_per_s(config, topic))
    for what, rates in (("produce", produced), ("consume", consumed)):
        plain = statistics.median(rates["PLAINTEXT"])
        for protocol in ("SSL", "SASL_SSL"):
            ours = statistics.median(rates[protocol])
            yield speed(f"{what} 1 KiB, {protocol} against PLAINTEXT", ours / 1000, plain / 1000, "k/s")


def request_us(port: int) -> float:
    connection = connect(port)
    frame = produce_frame()
    exchange(connection, frame)
    began_s = time.perf_counter()
    for _ in range(REQUESTS):
        exchange(connection, frame)
    spent_s = time.perf_counter() - began_s
    connection.close()
    return spent_s / REQUESTS * 1e6


def requests() -> Iterator[Row]:
    """One produce request at a time, with the ACLs on and off."""
    times: dict[bool, list[float]] = {True: [], False: []}
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder) / "on", acls=True) as (on, _),
        served(Path(folder) / "off", acls=False) as (off, _),
    ):
        for _ in range(ROUNDS):
            for is_on, addresses in ((True, on), (False, off)):
                times[is_on].append(request_us(int(addresses["PLAINTEXT"].rpartition(":")[2])))
    ours, theirs = (statistics.median(times[is_on]) for is_on in (True, False))
    yield against("a produce request, ACLs on against off", ours, theirs, at_most=1.05)


def lookups() -> Iterator[Row]:
    """Whether somebody may, among a thousand ACLs, when it was asked before."""
    acls = frozenset(
        Acl(
            ResourceType.TOPIC, f"topic-{number}", PatternType.LITERAL, "User:ann", "*", AclOperation.WRITE,
            AclPermission.ALLOW,
        )
        for number in range(1000)
    )  # fmt: skip
    authorizer = Authorizer(SecurityConfig(acls=True), lambda: acls)
    client: Any = SimpleNamespace(principal="User:ann", peer=("10.0.0.1", 1))
    context = Context(RequestHeader(PRODUCE, 9, 0, "c", 0), client)
    known = {"topic-7": True}
    write, topic = AclOperation.WRITE, ResourceType.TOPIC

    def ask() -> None:
        for _ in range(LOOKUPS):
            authorizer.is_allowed(context, write, topic, "topic-7")

    def look_up() -> None:
        for _ in range(LOOKUPS):
            known.get("topic-7")

    ours_us, theirs_us = (min(repeat(work, number=1, repeat=ROUNDS)) / LOOKUPS * 1e6 for work in (ask, look_up))
    yield against("an ACL that was asked before, against a bare dict", ours_us, theirs_us)


def rows() -> Iterator[Row]:
    yield from lookups()
    yield from requests()
    yield from throughput()
