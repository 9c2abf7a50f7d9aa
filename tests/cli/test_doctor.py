from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

from ottla.cli.checks.findings import Finding, note, ok, wrong
from ottla.cli.doctor import report_lines

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli

FREE = ("--set", "net.port=0", "--set", "http.port=-1")


def findings(cli: Cli, *arguments: str, exit_code: int) -> dict[str, dict[str, str]]:
    done = cli("doctor", *FREE, *arguments, "-o", "json", exit_code=exit_code)
    return {finding["subject"]: finding for finding in json.loads(done.stdout)}


def test_every_check_passes_for_a_healthy_broker(cli: Cli, tmp_path: Path) -> None:
    found = findings(cli, exit_code=0)
    assert list(found) == ["python", "codecs", "java", "file limit", "disk", "clock", "broker", "broker 0"]
    assert found["broker 0"]["judgement"] == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_failed_check_exits_with_1_and_says_how_to_fix_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        done = cli("doctor", *FREE[:2], "--set", f"http.port={port}", "--data-dir", "data", exit_code=1)
    assert "wrong  disk: data cannot be written to: Not a directory\n       → give this user" in done.stdout
    assert f"wrong  port {port}: taken by a program that is not a broker\n       → find it with" in done.stdout
    assert done.stderr == "ottla: 2 things are wrong\n"


def test_an_invalid_configuration_does_not_stop_the_other_checks(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ottla.toml").write_text("[log]\nsegment_byte = 1\n")
    done = cli("doctor", "-o", "json", exit_code=1)
    found = {finding["subject"]: finding for finding in json.loads(done.stdout)}
    assert found["configuration"]["text"].startswith("ottla.toml:2: unknown setting log.segment_byte")
    assert "disk" in found


def test_an_unreachable_named_broker_is_an_error(cli: Cli) -> None:
    assert findings(cli, "-b", "127.0.0.1:1", exit_code=1)["broker"]["judgement"] == "wrong"


def test_findings_are_wrapped_to_the_terminal_with_their_fix_below() -> None:
    listed: list[Finding] = [ok("a", "fine"), note("b", "one two three four", "do this and that"), wrong("c", "x", "y")]
    assert list(report_lines(listed, 24)) == [
        "ok     a: fine",
        "note   b: one two",
        "         three four",
        "       → do this and",
        "         that",
        "wrong  c: x",
        "       → y",
    ]
