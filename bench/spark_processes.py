"""What the kernel says of Spark's processes."""

from __future__ import annotations

import os
from pathlib import Path


def cpu_s_of_tree(root: int) -> float:
    """CPU time of the JVM, its Python workers, and of workers that have ended."""
    ticks = 0
    for pid in _tree(root):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def largest_worker_mib() -> float:
    """The most memory that a Python worker has used."""
    sizes = [0]
    for pid in _tree(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        if b"pyspark.daemon" in command:
            sizes += [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
    return max(sizes) / 1024


def _tree(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, left = [], [root]
    while left:
        found.append(pid := left.pop())
        left += parents.get(pid, [])
    return found
