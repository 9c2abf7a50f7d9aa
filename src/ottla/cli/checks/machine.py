"""Checks of the machine: open file limit, disk, clock."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.cli.checks.findings import Finding, note, ok, wrong

if TYPE_CHECKING:
    from pathlib import Path

FEWEST_DESCRIPTORS: Final = 1024
LEAST_FREE_BYTES: Final = 256 << 20
LITTLE_FREE_BYTES: Final = 2 << 30
LITTLE_FREE_SHARE: Final = 0.05
FEWEST_FREE_FILES: Final = 10_000
OLDEST_TIME_S: Final = 1_760_000_000
"""Before there was any Ottla."""
_FUTURE_S: Final = 60
_CLOCK_IS_UNSYNCHRONISED: Final = 5  # TIME_ERROR of adjtimex(2)
_TIMEX_BYTES: Final = 512  # more than the structure has on any platform


def check_descriptors(max_connections: int, folder: Path) -> Finding:
    try:
        import resource
    except ImportError:
        return ok("file limit", "none on this platform")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return judge_descriptors(hard, max_connections, _count_partitions(folder))


def _count_partitions(folder: Path) -> int:
    try:
        with os.scandir(folder) as found:
            return sum(each.name.rpartition("-")[2].isdecimal() for each in found)
    except OSError:
        return 0


def judge_descriptors(limit: int, max_connections: int, partitions: int) -> Finding:
    """Judge the hard limit, to which the broker raises its soft limit; negative for none."""
    fix = "raise it: `ulimit -Hn`, LimitNOFILE= of a systemd unit, or --ulimit nofile= of a container"
    if limit < 0:
        return ok("file limit", "none")
    from ottla.storage.segment_files.open_files import shortage_for  # not on every platform

    if limit < FEWEST_DESCRIPTORS:
        return wrong("file limit", f"only {limit} file descriptors are allowed", fix)
    if limit < max_connections:
        text = f"{limit} files and connections may be open at once, and net.max_connections is {max_connections}"
        return note("file limit", text, fix)
    if (shortage := shortage_for(partitions, limit)) is not None:
        return note("file limit", shortage, fix)
    return ok("file limit", f"{limit} files and connections")


@dataclass(frozen=True, slots=True)
class Disk:
    folder: Path
    exists: bool
    refusal: str | None
    """Why nothing can be written there."""
    free_bytes: int
    total_bytes: int
    free_files: int | None
    """None where the file system does not count them."""


def check_disk(folder: Path) -> Finding:
    there = folder.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    usage = shutil.disk_usage(there)
    counted = os.statvfs(there)
    disk = Disk(
        folder=folder,
        exists=folder.is_dir(),
        refusal=_refusal(there),
        free_bytes=usage.free,
        total_bytes=usage.total,
        free_files=counted.f_favail if counted.f_files else None,
    )
    return judge_disk(disk)


def _refusal(folder: Path) -> str | None:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"ottla")
            file.flush()
            os.fsync(file.fileno())
    except OSError as refused:
        return os.strerror(refused.errno) if refused.errno else str(refused)
    return None


def judge_disk(disk: Disk) -> Finding:
    space = f"{_spoken(disk.free_bytes)} free of {_spoken(disk.total_bytes)}"
    make_room = "make room, choose another --data-dir, or let topics keep less (log.retention_ms, log.retention_bytes)"
    if disk.refusal is not None:
        fix = "give this user the right to write there, or choose another --data-dir"
        return wrong("disk", f"{disk.folder} cannot be written to: {disk.refusal}", fix)
    if disk.free_bytes < LEAST_FREE_BYTES:
        return wrong("disk", f"{disk.folder} is almost full: {space}", make_room)
    if disk.free_files is not None and disk.free_files < FEWEST_FREE_FILES:
        return note("disk", f"{disk.folder} has room for {disk.free_files} more files only", make_room)
    if disk.free_bytes < max(LITTLE_FREE_BYTES, disk.total_bytes * LITTLE_FREE_SHARE):
        return note("disk", f"{disk.folder} fills up: {space}", make_room)
    state = "can be written to" if disk.exists else "can be created"
    return ok("disk", f"{disk.folder} {state}; {space}")


def _spoken(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.1f} GiB" if size_bytes >= 1 << 30 else f"{size_bytes >> 20} MiB"


def check_clock(folder: Path) -> Finding:
    return judge_clock(time.time(), _newest_file(folder), is_synchronised=_is_synchronised())


def judge_clock(now_s: float, newest_file_s: float | None, *, is_synchronised: bool | None) -> Finding:
    """Checks the clock against plausible times, the newest file of the data folder, and the system's sync status."""
    fix = "set it, and keep it right: `timedatectl set-ntp true`, or chrony on the machine that hosts this one"
    if now_s < OLDEST_TIME_S:
        return wrong("clock", f"it says {time.strftime('%Y-%m-%d', time.gmtime(now_s))}, which is in the past", fix)
    if newest_file_s is not None and newest_file_s > now_s + _FUTURE_S:
        text = f"it is {newest_file_s - now_s:.0f} s behind the newest file of the data folder"
        return wrong("clock", f"{text}: messages would be deleted or kept by a wrong time", fix)
    if is_synchronised is False:
        return note("clock", "not synchronised with a time server", fix)
    return ok("clock", "synchronised" if is_synchronised else "plausible")


def _newest_file(folder: Path) -> float | None:
    try:
        return max((each.stat().st_mtime for each in folder.iterdir()), default=None)
    except OSError:
        return None


def _is_synchronised() -> bool | None:
    """The kernel's time synchronisation status; None if unknown."""
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError, TypeError):
        return None
    return None if state < 0 else state != _CLOCK_IS_UNSYNCHRONISED
