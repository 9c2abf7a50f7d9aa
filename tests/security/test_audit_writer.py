"""The audit file is written in a thread: a hanging disk does not block clients, and is reported."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tests.broker.raw_client import RawClient

from ottla.broker.security import audit_writer
from ottla.broker.security.audit_file import AuditFile
from ottla.broker.security.audit_writer import AuditWriter
from ottla.core.errors import ErrorCode

from .securing import secured
from .test_gate import METADATA, log_in

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Hanging(AuditFile):
    """An audit file whose disk hangs until released."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_writing = threading.Event()
        self.may_write = threading.Event()

    def retry(self, now_s: float) -> None:
        self.is_writing.set()
        assert self.may_write.wait(20)
        super().retry(now_s)


def test_lines_are_written_in_order_and_all_of_them_by_the_end(tmp_path: Path) -> None:
    writer = AuditWriter(AuditFile(tmp_path / "audit"))
    lines = [str(number).encode() for number in range(1000)]
    for line in lines:
        writer.write(line, 0.0)
    writer.close()
    assert (tmp_path / "audit").read_bytes().splitlines() == lines
    assert (writer.dropped, writer.waiting) == (0, 0)


def test_while_the_disk_hangs_lines_are_queued_up_to_a_limit_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_writer, "_MOST_LINES", 10)
    file = Hanging(tmp_path / "audit")
    writer = AuditWriter(file)
    writer.write(b"first", 0.0)
    assert file.is_writing.wait(20)
    for number in range(15):
        writer.write(str(number).encode(), 0.0)  # returns although nothing is written
    assert (writer.dropped, writer.flush(0.0)) == (5, False)
    file.may_write.set()
    writer.close()
    assert (tmp_path / "audit").read_bytes().split() == [b"first", *(str(each).encode() for each in range(10))]


def test_a_hanging_disk_is_reported_and_does_not_block_shutdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(audit_writer, "_SLOW_S", 0.0)
    monkeypatch.setattr(audit_writer, "_CLOSE_S", 0.01)
    file = Hanging(tmp_path / "audit")
    writer = AuditWriter(file)
    writer.write(b"first", 0.0)
    assert file.is_writing.wait(20)
    for _ in range(3):
        writer.write(b"next", 0.0)
    writer.close()
    assert caplog.text.count("the disk does not take the audit log") == 1
    assert "lines of the audit log: the disk hangs" in caplog.text
    file.may_write.set()


def test_a_client_is_answered_while_the_disk_hangs(tmp_path: Path) -> None:
    with secured(tmp_path) as broker:
        audit = broker.embedded.broker.security.audit
        assert audit is not None
        [writer] = audit.targets
        assert isinstance(writer, AuditWriter)
        file = writer._file = Hanging(tmp_path / "audit")
        with RawClient(broker.address("SASL_PLAINTEXT")) as client:
            assert log_in(client).error_code == ErrorCode.NONE
            assert client.ask(METADATA).brokers
        assert file.is_writing.wait(20)
        file.may_write.set()
    assert b'"login"' in (tmp_path / "audit").read_bytes()


def test_lines_that_a_full_disk_refused_are_written_when_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_writer, "_RETRY_S", 0.01)
    file = AuditFile(tmp_path / "audit")
    tried, has_room = threading.Event(), threading.Event()
    flush = file._flush

    def full(now_s: float) -> None:
        tried.set()
        if not has_room.is_set():
            raise OSError(28, "No space left on device")
        flush(now_s)

    monkeypatch.setattr(file, "_flush", full)
    writer = AuditWriter(file)
    writer.write(b"line", 0.0)
    assert tried.wait(20)
    has_room.set()
    while writer.waiting:
        assert writer._thread is not None
        writer._thread.join(0.01)
    assert (tmp_path / "audit").read_bytes() == b"line\n"
    writer.close()
