"""Where audit lines go besides the file: syslog, and a topic of the broker itself."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.broker.raw_client import RawClient

import ottla
from ottla.broker.security.audit import Audit
from ottla.broker.security.audit_chain import Chain
from ottla.broker.security.audit_syslog import AuditSyslog
from ottla.broker.topics import AUDIT
from ottla.cli.main import program
from ottla.core.errors import OttlaError
from ottla.net.security_config import SecurityConfig

from .securing import secured
from .test_gate import log_in
from .test_rest import served

if TYPE_CHECKING:
    from pathlib import Path


def test_lines_go_to_a_local_syslog_socket_and_are_counted_as_dropped_if_it_is_full(tmp_path: Path) -> None:
    where = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(where)
        target = AuditSyslog(where)
        target.write(b'{"event":"login"}', 0.0)
        received = server.recv(1000)
        assert received.startswith(b"<85>ottla-audit[")
        assert received.endswith(b']: {"event":"login"}')
        for _ in range(5000):
            target.write(b"x" * 1000, 0.0)
        assert target.dropped > 0
    before = target.dropped
    target.write(b"{}", 1.0)
    assert target.dropped == before + 1
    target.close()


def test_lines_go_to_syslog_over_udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        target = AuditSyslog(f"127.0.0.1:{server.getsockname()[1]}")
        target.write(b'{"event":"login"}', 0.0)
        assert server.recv(1000).startswith(b"<85>1 1970-01-01T00:00:00.000+00:00 ")
        target.close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"audit_targets": ()}, "audit_targets must be one or more of file, syslog and topic, got nothing"),
        ({"audit_targets": ("file", "file")}, "got file, file"),
        ({"audit_targets": ("topic",), "audit_file": "a"}, "audit_file has no effect"),
        ({"audit_max_bytes": -1}, "audit_max_bytes must be at least 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SecurityConfig(**changes)


def read_audit(broker: Any, count: int) -> list[dict[str, Any]]:
    """The first lines of the topic; waits until there are enough."""
    options: dict[str, Any] = {"security": broker.login("admin"), "auto_offset_reset": "earliest"}
    with ottla.Consumer(broker.address("SASL_SSL"), **options) as consumer:
        consumer.assign([ottla.TopicPartition(AUDIT, 0)])
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + 20
        while len(found) < count and time.monotonic() < deadline:
            found += [json.loads(record.value) for record in consumer.poll(timeout_ms=1000)]
        return found


def test_the_audit_topic_has_every_line_and_only_the_broker_writes_it(tmp_path: Path) -> None:
    with secured(tmp_path, audit_targets=("file", "topic")) as broker:
        with broker.admin() as admin:
            admin.create_topic("orders")
        lines = read_audit(broker, 3)
        assert [line["seq"] for line in lines[:3]] == [1, 2, 3]
        assert {line["event"] for line in lines} == {"login", "change"}
        with (
            ottla.Producer(broker.address("SASL_SSL"), security=broker.login("admin")) as producer,
            pytest.raises(OttlaError, match="may not write to the internal topic"),
        ):
            producer.send(AUDIT, b"{}").result(20)
        written = broker.audit()
        assert [line["prev"] for line in lines] == [line["prev"] for line in written[: len(lines)]]
    path = tmp_path / "data" / "audit.jsonl"
    assert CliRunner().invoke(program, ["audit", "verify", str(path)]).exit_code == 0


def test_reads_are_audited_by_choice_once_for_each_user_and_topic_and_never_those_of_the_audit_topic(
    tmp_path: Path,
) -> None:
    with secured(tmp_path, audit_reads=True, audit_targets=("file", "topic")) as broker:
        with ottla.Producer(broker.address("SASL_SSL"), security=broker.login("ann")) as producer:
            for number in range(3):
                producer.send("orders", str(number).encode()).result(20)
        options: dict[str, Any] = {"security": broker.login("bob"), "auto_offset_reset": "earliest"}
        with ottla.Consumer(broker.address("SASL_SSL"), **options) as consumer:
            consumer.assign([ottla.TopicPartition("orders", 0)])
            got = 0
            while got < 3:
                got += len(consumer.poll(max_records=1, timeout_ms=1000))
        read_audit(broker, 3)
        with served(broker) as http, http.by("ann") as client:
            assert client.get("/v1/topics/orders/messages").status_code == 200
        reads = [(line["principal"], line["names"]) for line in broker.audit() if line["event"] == "read"]
        assert reads == [("User:bob", ["orders"]), ("User:ann", ["orders"])]


def test_counts_and_drops_are_in_the_metrics(tmp_path: Path) -> None:
    with secured(tmp_path) as broker, served(broker) as http, http.by("admin") as client:
        with RawClient(broker.address("SASL_PLAINTEXT")) as raw:
            log_in(raw, "ann")
        text = client.get("/metrics").text
        assert 'ottla_audit_lines_total{event="login"} 2' in text
        assert 'ottla_audit_dropped_lines_total{target="file"} 0' in text


class Full:
    name = "full"
    dropped = 0

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, line: bytes, now_s: float) -> None:  # noqa: ARG002
        self.lines.append(line)

    def close(self) -> None:
        pass


def test_each_target_gets_the_same_line() -> None:
    one, other = Full(), Full()
    audit = Audit([one, other], Chain(), 7)
    audit.login_failed("PLAIN", "10.0.0.1:5", "wrong password")
    assert one.lines == other.lines
    assert json.loads(one.lines[0])["node"] == 7
