"""The id of the machine's current boot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_LINUX: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """An id that changes with every boot, and is the same for all processes; empty if the system does not provide
    it.
    """
    try:
        if sys.platform == "darwin":
            return _of_macos()
        return _LINUX.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def _of_macos() -> str:
    import subprocess  # only on that platform: importing it takes time

    asked = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603
    except subprocess.SubprocessError:
        return ""
