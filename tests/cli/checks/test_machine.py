from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.cli.checks.findings import Judgement
from ottla.cli.checks.machine import (
    OLDEST_TIME_S,
    Disk,
    _count_partitions,
    check_clock,
    check_disk,
    judge_clock,
    judge_descriptors,
    judge_disk,
)

GIB = 1 << 30
ROOMY = Disk(Path("data"), True, None, 50 * GIB, 100 * GIB, 1_000_000)  # noqa: FBT003


@pytest.mark.parametrize(
    ("limit", "judgement"),
    [
        (-1, Judgement.OK),
        (20_000, Judgement.OK),
        (19_999, Judgement.NOTE),
        (1024, Judgement.NOTE),
        (1023, Judgement.WRONG),
    ],
)
def test_the_file_limit_is_checked_against_the_connection_limit(limit: int, judgement: Judgement) -> None:
    assert judge_descriptors(limit, 20_000, partitions=0).judgement is judgement


def test_the_file_limit_is_checked_against_the_partitions(tmp_path: Path) -> None:
    finding = judge_descriptors(20_000, 10, partitions=10_001)
    assert finding.judgement is Judgement.NOTE
    assert "10001 partitions, but with a limit of 20000 file descriptors only 10000 of their files stay open" in (
        finding.text
    )
    assert judge_descriptors(20_000, 10, partitions=10_000).judgement is Judgement.OK
    for name in ("orders-0", "orders-1", "a-b-12", "ottla.sqlite", "recovery-point-offset-checkpoint"):
        (tmp_path / name).mkdir()
    assert _count_partitions(tmp_path) == 3
    assert _count_partitions(tmp_path / "missing") == 0


@pytest.mark.parametrize(
    ("disk", "judgement", "text"),
    [
        (ROOMY, Judgement.OK, "data can be written to; 50.0 GiB free of 100.0 GiB"),
        (replace(ROOMY, exists=False), Judgement.OK, "data can be created; 50.0 GiB free of 100.0 GiB"),
        (replace(ROOMY, free_files=None), Judgement.OK, "data can be written to; 50.0 GiB free of 100.0 GiB"),
        (
            replace(ROOMY, refusal="Read-only file system"),
            Judgement.WRONG,
            "data cannot be written to: Read-only file system",
        ),
        (replace(ROOMY, free_bytes=100 << 20), Judgement.WRONG, "data is almost full: 100 MiB free of 100.0 GiB"),
        (replace(ROOMY, free_bytes=4 * GIB), Judgement.NOTE, "data fills up: 4.0 GiB free of 100.0 GiB"),
        (replace(ROOMY, free_bytes=GIB, total_bytes=2 * GIB), Judgement.NOTE, "data fills up: 1.0 GiB free of 2.0 GiB"),
        (replace(ROOMY, free_files=9), Judgement.NOTE, "data has room for 9 more files only"),
    ],
)
def test_a_disk_is_checked_for_writability_and_free_space(disk: Disk, judgement: Judgement, text: str) -> None:
    finding = judge_disk(disk)
    assert (finding.judgement, finding.text) == (judgement, text)


@pytest.mark.parametrize(
    ("now", "newest", "is_synchronised", "judgement", "text"),
    [
        (0, None, True, Judgement.WRONG, "it says 1970-01-01, which is in the past"),
        (OLDEST_TIME_S, OLDEST_TIME_S + 3600, True, Judgement.WRONG, "it is 3600 s behind the newest file"),
        (OLDEST_TIME_S, OLDEST_TIME_S + 1, True, Judgement.OK, "synchronised"),
        (OLDEST_TIME_S, None, False, Judgement.NOTE, "not synchronised with a time server"),
        (OLDEST_TIME_S, None, None, Judgement.OK, "plausible"),
    ],
)
def test_a_clock_is_checked_against_files_and_time_synchronisation(
    now: float, newest: float | None, is_synchronised: bool | None, judgement: Judgement, text: str
) -> None:
    finding = judge_clock(now, newest, is_synchronised=is_synchronised)
    assert finding.judgement is judgement
    assert finding.text.startswith(text)


def test_a_folder_is_checked_and_left_unchanged(tmp_path: Path) -> None:
    assert check_disk(tmp_path).text.startswith(f"{tmp_path} can be written to; ")
    assert check_disk(tmp_path / "a" / "b").text.startswith(f"{tmp_path}/a/b can be created; ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    finding = check_disk(tmp_path / "data")
    assert (finding.judgement, finding.text) == (
        Judgement.WRONG,
        f"{tmp_path}/data cannot be written to: Not a directory",
    )


def test_a_file_from_the_future_reveals_a_wrong_clock(tmp_path: Path) -> None:
    (tmp_path / "newest").touch()
    os.utime(tmp_path / "newest", (1 << 33, 1 << 33))
    assert check_clock(tmp_path).judgement is Judgement.WRONG
