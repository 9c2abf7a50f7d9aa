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
from bench.requests import produce_frame
from bench.sides import Kafka, free_port
from ottla.broker.authorization.authorizer import Authorizer
from ottla.broker.authorization.topics import produce
from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.broker.context import Context
from ottla.broker.security.users import add_user_offline
from ottla.broker.settings import Settings
from ottla.net.security_config import SecurityConfig
from ottla.storage.catalog.entries import Acl, AclOperation, AclPermission, PatternType, ResourceType
from ottla.wire.apis import PRODUCE
from ottla.wire.codec import decode_request
from ottla.wire.header import RequestHeader, read_request_header

RECORDS = 60_000
VALUE = bytes(1024)
ROUNDS = 7
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
acls = true
super_users = ["User:bench", "User:ANONYMOUS"]
"""


@contextmanager
def served(folder: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """The addresses by protocol, and whom to trust."""
    folder.mkdir()
    authority = Authority(folder)
    server = authority.server()
    text = CONFIG.format(cert=server.cert, key=server.key)
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


def rates(configs: dict[str, dict[str, Any]]) -> dict[tuple[str, str], float]:
    """Records in a second, by what is done and by protocol; the protocols take turns."""
    measured: dict[tuple[str, str], list[float]] = {}
    for number in range(ROUNDS):
        for protocol, config in configs.items():
            topic = f"{protocol}-{number}"
            admin = AdminClient(config)
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
            measured.setdefault(("produce", protocol), []).append(produced_per_s(config, topic))
            measured.setdefault(("consume", protocol), []).append(consumed_per_s(config, topic))
    return {what: statistics.median(values) for what, values in measured.items()}


class GuardedKafka(Kafka):
    """With a second listener, for TLS."""

    def __init__(self) -> None:
        super().__init__()
        self.tls_port = free_port()
        self.authority = Authority(self.folder)

    def prepare(self) -> None:
        super().prepare()
        server = self.authority.server()
        own = self.folder / "keystore.pem"
        own.write_bytes(server.key.read_bytes() + server.cert.read_bytes())
        text = self._settings.read_text().replace(
            "listeners=PLAINTEXT", f"listeners=SSL://127.0.0.1:{self.tls_port},PLAINTEXT"
        )
        self._settings.write_text(
            text.replace("map=PLAINTEXT", "map=SSL:SSL,PLAINTEXT")
            + f"ssl.keystore.type=PEM\nssl.keystore.location={own}\n"
        )


def throughput() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "b") as (addresses, authority):
        ours = rates({protocol: client_config(protocol, where, authority) for protocol, where in addresses.items()})
    for what in ("produce", "consume"):
        plain = ours[what, "PLAINTEXT"]
        for protocol in ("SSL", "SASL_SSL"):
            yield speed(f"{what} 1 KiB, {protocol} against PLAINTEXT", ours[what, protocol] / 1000, plain / 1000, "k/s")
    with GuardedKafka() as kafka:
        where = {"PLAINTEXT": kafka.bootstrap, "SSL": f"localhost:{kafka.tls_port}"}
        theirs = rates({protocol: client_config(protocol, at, kafka.authority.cert) for protocol, at in where.items()})
    for what in ("produce", "consume"):
        kept, kafkas = (rate[what, "SSL"] / rate[what, "PLAINTEXT"] * 100 for rate in (ours, theirs))
        yield speed(f"{what} 1 KiB, what TLS leaves of it, against Apache Kafka", kept, kafkas, "%", at_least=1.0)


def requests() -> Iterator[Row]:
    """What its rule takes of answering a produce request, both without a network."""
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Settings(broker=BrokerConfig(data_dir=Path(folder))))
        broker.create_topic("bench")
        authorizer = Authorizer(
            SecurityConfig(acls=True, super_users=("User:bench",)), lambda: broker.catalog.view.acls
        )
        connection: Any = SimpleNamespace(principal="User:bench", peer=("127.0.0.1", 1), login=None, state={})
        frame = memoryview(bytearray(produce_frame()[4:]))
        header = read_request_header(frame)
        request: Any = decode_request(header, frame)
        context = Context(header, connection)

        def answer() -> None:
            broker.dispatcher.answer(connection, frame)

        def pass_rule() -> None:
            produce(authorizer, lambda *_: None, broker, request, context)

        rule_us, answer_us = (
            min(repeat(work, number=REQUESTS, repeat=ROUNDS)) / REQUESTS * 1e6 for work in (pass_rule, answer)
        )
        broker.close()
    yield against("the rule of a produce request, against answering it", rule_us, answer_us, at_most=0.1)


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
