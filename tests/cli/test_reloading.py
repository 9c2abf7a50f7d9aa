"""SIGHUP, and the log lines of start and stop."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

from ottla.cli.server.loading import broker_settings
from ottla.cli.server.reloading import changed_settings
from ottla.core.config import Flag

from .serving import Serve

if TYPE_CHECKING:
    from pathlib import Path


def test_changed_settings_are_named_with_their_section(tmp_path: Path) -> None:
    before = broker_settings(None, [], {"broker.data_dir": Flag("--data-dir", str(tmp_path))})
    after = broker_settings(
        None, ["log.segment_bytes=1MiB", "http.port=0"], {"broker.data_dir": Flag("-", str(tmp_path))}
    )
    assert list(changed_settings(before, before)) == []
    assert list(changed_settings(before, after)) == ["log.segment_bytes", "http.port"]


def test_sighup_reports_settings_that_need_a_restart_and_the_broker_runs_on(tmp_path: Path) -> None:
    config = tmp_path / "ottla.toml"
    config.write_text("")
    with Serve(tmp_path, "--config", str(config), "--log-level", "info", "--log-format", "json") as serve:
        ready = json.loads(serve.ready_line)
        assert (ready["kafka"], ready["level"], ready["pid"]) == (serve.address, "info", serve.process.pid)
        assert ready["message"].startswith("ottla is ready: Kafka on ")
        assert serve.process.stderr is not None
        lines: list[dict[str, Any]] = []

        def read_until(start: str) -> None:
            while not lines or not lines[-1]["message"].startswith(start):
                lines.append(json.loads(serve.process.stderr.readline()))

        config.write_text('[log]\nsegment_bytes = "64MiB"\n')
        serve.process.send_signal(signal.SIGHUP)
        read_until("SIGHUP: restart")
        config.write_text("[log]\nsegment_bytes = false\n")
        serve.process.send_signal(signal.SIGHUP)
        read_until("SIGHUP: invalid")
        assert serve.terminate() == 0
        lines += map(json.loads, serve.process.stderr)
    said = [line["message"] for line in lines if line["logger"] == "ottla.serve"]
    assert said[0].startswith("starting ottla ")
    assert said[1].startswith("opened ")
    assert said[3] == "SIGHUP: restart the broker to apply changed settings: log.segment_bytes"
    assert said[-2:] == ["stopping: received SIGTERM", "stopped"]
