"""What TLS costs, Ottla's and Apache Kafka's: each on a plain and on a TLS port of one broker, all of them in turns."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.security.certificates import Authority

from bench.report import Row, against, speed
from bench.sides import Kafka, free_port
from ottla.broker.config import BrokerConfig
from ottla.broker.security.users import add_user_offline
from ottla.broker.settings import Settings

RECORDS = 60_000
VALUE = bytes(1024)
WARM_UP_ROUNDS = 3
ROUNDS = 9
# By default librdkafka stops fetching for a second whenever 64 MiB wait for the application.
UNPAUSED = {"queued.min.messages": 10_000_000, "queued.max.messages.kbytes": 1_000_000}
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


@dataclass(frozen=True, slots=True)
class Door:
    """A port of a broker, and the client configuration for it."""

    pid: int
    config: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    per_s: float
    broker_us: float
    """CPU time of the broker per record, over all threads."""


@contextmanager
def ottla_doors(folder: Path) -> Iterator[dict[str, Door]]:
    """By protocol."""
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
        addresses = [one.split("://") for one in msgspec.json.decode(ready.read_bytes())["listeners"]]
        yield {
            protocol: Door(process.pid, client_config(protocol, where, authority.cert)) for protocol, where in addresses
        }
    finally:
        process.terminate()
        process.wait()


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

    def doors(self) -> dict[str, Door]:
        where = {"PLAINTEXT": self.bootstrap, "SSL": f"127.0.0.1:{self.tls_port}"}
        return {
            protocol: Door(self.pid, client_config(protocol, address, self.authority.cert))
            for protocol, address in where.items()
        }


def client_config(protocol: str, address: str, authority: Path) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap.servers": address.replace("127.0.0.1", "localhost"),
        "security.protocol": protocol,
        "log_level": 0,
    }
    if protocol != "PLAINTEXT":
        config["ssl.ca.location"] = str(authority)
    if protocol.startswith("SASL"):
        config |= {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "bench", "sasl.password": PASSWORD}
    return config


def produce_s(config: dict[str, Any], topic: str) -> float:
    producer = Producer({**config, "linger.ms": 5, "queue.buffering.max.messages": RECORDS + 1})
    producer.list_topics(topic)
    began_s = time.perf_counter()
    for _ in range(RECORDS):
        producer.produce(topic, VALUE)
    assert producer.flush(120) == 0
    return time.perf_counter() - began_s


def consume_s(config: dict[str, Any], topic: str) -> float:
    consumer = Consumer({**config, **UNPAUSED, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(30) is not None
    began_s = time.perf_counter()
    left = RECORDS - 1
    while left:
        # No more than there are, or the last call would wait for others until its time is over.
        left -= len(consumer.consume(min(left, 5000), 30))
    spent_s = time.perf_counter() - began_s
    consumer.close()
    return spent_s


def processor_s(pid: int) -> float:
    """CPU time of a process so far; the clock id is computed as by clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def costs(doors: dict[str, Door]) -> dict[tuple[str, str], Cost]:
    """By what is done and at which door."""
    measured: dict[tuple[str, str], list[Cost]] = defaultdict(list)
    for number in range(WARM_UP_ROUNDS + ROUNDS):
        for name, door in doors.items():
            topic = f"{name.replace(' ', '-')}-{number}"
            admin = AdminClient(door.config)
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
            for what, work_s in (("produce", produce_s), ("consume", consume_s)):
                before_s = processor_s(door.pid)
                spent_s = work_s(door.config, topic)
                broker_us = (processor_s(door.pid) - before_s) / RECORDS * 1e6
                if number >= WARM_UP_ROUNDS:
                    measured[what, name].append(Cost(RECORDS / spent_s, broker_us))
    return {
        done: Cost(statistics.median(one.per_s for one in each), statistics.median(one.broker_us for one in each))
        for done, each in measured.items()
    }


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, ottla_doors(Path(folder) / "b") as ours, GuardedKafka() as kafka:
        kafkas = {f"Kafka {protocol}": door for protocol, door in kafka.doors().items()}
        found = costs(ours | kafkas)
    for what in ("produce", "consume"):
        plain = found[what, "PLAINTEXT"]
        for protocol in ("SSL", "SASL_SSL"):
            here = found[what, protocol]
            yield speed(f"{what} 1 KiB, {protocol} against PLAINTEXT", here.per_s / 1000, plain.per_s / 1000, "k/s")
        tls, theirs, plain_theirs = found[what, "SSL"], found[what, "Kafka SSL"], found[what, "Kafka PLAINTEXT"]
        yield speed(f"{what} 1 KiB, SSL against Apache Kafka's", tls.per_s / 1000, theirs.per_s / 1000, "k/s")
        added_us, their_added_us = tls.broker_us - plain.broker_us, theirs.broker_us - plain_theirs.broker_us
        yield against(f"{what} 1 KiB, what TLS adds to the broker's work, against Kafka's", added_us, their_added_us)
        kept, kafkas_kept = tls.per_s / plain.per_s * 100, theirs.per_s / plain_theirs.per_s * 100
        yield speed(f"{what} 1 KiB, what TLS leaves of it, against Kafka's", kept, kafkas_kept, "%", at_least=1.0)
