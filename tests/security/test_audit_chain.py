"""The audit log's file: its hash chain, its rotation, and what happens when the disk refuses."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from ottla.broker.security.audit_chain import Chain, ChainBroken, digest, verify
from ottla.broker.security.audit_file import AuditFile, Rotation
from ottla.cli.main import program
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def lines(count: int, chain: Chain | None = None, now_s: float = 0.0) -> list[bytes]:
    chain = chain or Chain()
    when = datetime.fromtimestamp(now_s, UTC).isoformat()
    return [chain.link({"time": when, "event": "login", "n": n}) for n in range(count)]


def broken(*files: Iterable[bytes]) -> tuple[str, str]:
    with pytest.raises(ChainBroken) as caught:
        verify({f"f{number}": each for number, each in enumerate(files)})
    return str(caught.value.place), caught.value.reason


def test_an_intact_chain_is_verified_across_files() -> None:
    written = lines(10)
    verified = verify({"a": written[:4], "b": written[4:]}, wanted=[digest(written[6])])
    [(chain, last)] = verified.last.items()
    assert (verified.first[chain], last.seq, last.digest, verified.lines) == (1, 10, digest(written[-1]), 10)
    assert verified.digests == {digest(written[6])}


def test_a_changed_line_is_found_at_the_line_after_it() -> None:
    written = lines(5)
    written[2] = written[2].replace(b"login", b"logon")
    assert broken(written) == ("f0:4", "prev does not match the hash of the line before it (seq 3), which was changed")


def test_removed_inserted_and_moved_lines_are_found() -> None:
    written = lines(6)
    assert broken(written[:2], written[3:]) == ("f1:1", "seq 4 follows seq 2: line 3 is missing")
    assert broken([written[0], *written[3:]])[1] == "seq 4 follows seq 1: lines 2 to 3 are missing"
    assert broken([*written[:3], b'{"event":"login"}'])[0] == "f0:4"
    assert broken([*written[:3], written[2]])[1] == "seq 3 follows seq 3: lines were inserted or are out of order"


def test_lines_of_an_older_release_may_only_precede_a_whole_chain() -> None:
    written, old = lines(3), b'{"event":"login"}'
    assert verify({"a": [old, old, *written]}).unchained == 2
    assert broken([old, *written[1:]])[1] == "seq 2 follows lines without a chain: lines were replaced"


def test_chains_of_several_nodes_may_be_mixed() -> None:
    one, other = lines(3), lines(3)
    assert verify({"topic": [line for pair in zip(one, other, strict=True) for line in pair]}).lines == 6


def write(file: AuditFile, count: int, now_s: float = 0.0) -> None:
    for line in lines(count, file.chain, now_s):
        file.write(line, now_s)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("audit*.jsonl"), key=lambda path: json.loads(path.read_bytes().splitlines()[0])["seq"])


def test_a_file_is_rotated_by_size_and_the_chain_continues_after_a_restart(tmp_path: Path) -> None:
    rotation = Rotation(max_bytes=1000, kept=2)
    for _ in range(4):
        file = AuditFile(tmp_path / "audit.jsonl", rotation)
        write(file, 5)
        file.close()
    found = files(tmp_path)
    assert len(found) == 3
    assert all(path.stat().st_size <= 1000 for path in found)
    verified = verify({str(path): path.read_bytes().splitlines() for path in found})
    [last] = verified.last.values()
    assert last.seq == 20


def test_a_file_is_rotated_by_the_age_of_its_first_line_also_across_a_restart(tmp_path: Path) -> None:
    for at_s in (1000, 1030, 1059, 1060, 1061):
        file = AuditFile(tmp_path / "audit.jsonl", Rotation(max_age_s=60))
        write(file, 1, at_s)
        file.close()
    assert [len(path.read_bytes().splitlines()) for path in files(tmp_path)] == [3, 2]


def test_a_chain_continues_if_a_rotation_preceded_the_restart(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit.jsonl")
    write(file, 3)
    file.close()
    (tmp_path / "audit.jsonl").rename(tmp_path / "audit-20260101T000000.000000Z-3.jsonl")
    again = AuditFile(tmp_path / "audit.jsonl")
    assert (again.chain.id, again.chain.seq) == (file.chain.id, 3)
    again.close()


def test_a_line_truncated_by_a_crash_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path)
    write(file, 3)
    file.close()
    path.write_bytes(path.read_bytes() + b'{"event":"lo')
    file = AuditFile(path)
    write(file, 1)
    file.close()
    assert verify({"a": path.read_bytes().splitlines()}).lines == 4


def test_a_file_moved_by_another_program_is_re_created(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path)
    write(file, 2)
    path.rename(tmp_path / "moved")
    write(file, 2)
    file.close()
    read = {name: (tmp_path / name).read_bytes().splitlines() for name in ("moved", "audit.jsonl")}
    assert {name: len(each) for name, each in read.items()} == {"moved": 2, "audit.jsonl": 2}
    assert verify(read).lines == 4


def test_lines_refused_by_the_disk_are_written_later_and_a_torn_one_is_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path)
    write(file, 1)
    real = os.write

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    def torn(fd: int, data: Any) -> int:
        return real(fd, data[:10])

    for refusing in (full, torn):
        monkeypatch.setattr(os, "write", refusing)
        write(file, 1)
        monkeypatch.undo()
    assert len(path.read_bytes().splitlines()) == 1
    write(file, 1)
    file.close()
    assert file.dropped == 0
    assert verify({"a": path.read_bytes().splitlines()}).lines == 4


def test_two_brokers_cannot_write_to_one_file(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit.jsonl")
    with pytest.raises(ConfigError, match="in use by another broker"):
        AuditFile(tmp_path / "audit.jsonl")
    file.close()


def run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(program, ["audit", "verify", *args])
    return result.exit_code, result.output


def test_the_command_verifies_files_in_any_order_and_names_the_first_broken_line(tmp_path: Path) -> None:
    written = lines(6)
    first, second = tmp_path / "audit-1.jsonl", tmp_path / "audit.jsonl"
    first.write_bytes(b"\n".join(written[:3]) + b"\n")
    second.write_bytes(b"\n".join(written[3:]) + b"\n")
    code, output = run(str(second), str(first), "--head", digest(written[5]))
    assert code == 0
    assert f"lines 1 to 6 are intact; head {digest(written[5])}" in output
    code, output = run(str(second))
    assert code == 0
    assert "lines before 4 are not in these files" in output
    second.write_bytes(b"\n".join(written[4:]) + b"\n")
    assert run(str(first), str(second)) == (1, f"ottla: {second}:1: seq 5 follows seq 3: line 4 is missing\n")


def test_the_command_detects_removed_last_lines_by_a_known_hash(tmp_path: Path) -> None:
    written = lines(6)
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"\n".join(written[:5]) + b"\n")
    assert run(str(path))[0] == 0
    code, output = run(str(path), "--head", digest(written[5]))
    assert code == 1
    assert "lines were removed or the files were rewritten" in output
