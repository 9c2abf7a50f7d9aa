"""A full disk is reported: in the log, by /ready and /metrics, and to producers that retry."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.rest.serving import HttpBroker

import ottla
from ottla.broker.upkeep.disk_space import DiskSpace, Space, can_write

from .mounting import CannotMount, tmpfs

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = OSError(errno.ENOSPC, "No space left on device")
DOCS = Path(__file__).parents[2] / "docs"


def test_the_full_state_is_logged_once_and_left_when_there_is_more_space(caplog: pytest.LogCaptureFixture) -> None:
    space = Space(0, 1 << 30)

    async def scene() -> None:
        nonlocal space
        disk = DiskSpace(Path("data"), lambda _: space)
        disk.refused(OSError(errno.EIO, "Input/output error"))
        assert not disk.is_full
        for _ in range(3):
            disk.refused(FULL)
        assert disk.is_full
        space = Space((1 << 20) - 1, 1 << 30)
        disk.check()
        assert disk.is_full
        space = Space(1 << 20, 1 << 30)
        disk.check()
        assert not disk.is_full
        disk.stop()

    with caplog.at_level(logging.WARNING, "ottla"):
        asyncio.run(scene())
    assert caplog.messages == [
        "disk full: appends to data fail (No space left on device); 0 of 1073741824 bytes are free",
        "disk no longer full: 1048576 bytes are free in data, appends continue",
    ]


def test_the_end_of_an_exceeded_quota_is_noticed_although_the_free_space_stays_the_same() -> None:
    writable = False

    async def scene() -> None:
        nonlocal writable
        disk = DiskSpace(Path("data"), lambda _: Space(1 << 29, 1 << 30), lambda _: writable)
        disk.refused(OSError(errno.EDQUOT, "Disk quota exceeded"))
        disk.check()
        assert disk.is_full
        writable = True
        disk.check()
        assert not disk.is_full
        disk.stop()

    asyncio.run(scene())


def test_a_probe_of_a_folder_leaves_no_file(tmp_path: Path) -> None:
    assert can_write(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not can_write(tmp_path / "missing")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    try:
        with tmpfs(tmp_path / "small", "2m") as mounted:
            yield mounted
    except CannotMount as missing:
        pytest.skip(f"a small disk is needed: {missing}")


def test_a_full_disk_is_seen_by_operators_and_producers(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "ottla"),
        HttpBroker(folder / "data") as served,
        ottla.Producer(served.servers, delivery_timeout_ms=60_000) as producer,
    ):
        http = served.client
        producer.send("orders", b"first").result()
        assert http.get("/ready").status_code == 200
        ballast = folder / "ballast"
        free = os.statvfs(folder)
        ballast.write_bytes(bytes(free.f_bavail * free.f_frsize))
        delivery = producer.send("orders", bytes(100_000))
        while not caplog.messages:
            http.get("/health")
        refused = http.get("/ready")
        assert (refused.status_code, refused.json()["detail"]) == (503, "the disk is full: appends fail")
        shown = http.get("/metrics").text
        assert re.search("^ottla_disk_full 1$", shown, re.MULTILINE)
        assert float(re.findall(r"^ottla_disk_free_bytes (\S+)$", shown, re.MULTILINE)[0]) < 100_000
        ballast.unlink()
        delivery.result()
        while http.get("/ready").status_code != 200:
            pass
    said = [message.split(":")[0] for message in caplog.messages]
    assert sorted(said) == ["disk full", "disk no longer full", "orders-0"]


def test_alert_rules_use_metrics_that_exist() -> None:
    sources = "".join(file.read_text() for file in (DOCS.parent / "src/ottla/http/monitoring").glob("*.py"))
    used = set(re.findall(r"\bottla_[a-z_]+", (DOCS / "prometheus-alerts.yml").read_text()))
    assert used
    for name in used - {"ottla_disk_free_bytes", "ottla_disk_total_bytes"}:
        assert f'"{name}"' in sources, name
