"""`make bench`: every measurement, or those named on the command line.

`--page` writes the tables to docs/performance.md as well, which needs an idle machine. BENCH_SHORT=1 shortens the
comparisons with other brokers, to see that all of them start.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys

from bench.page import PAGE, marked, why_not, with_table
from bench.report import table

BENCHES = [
    "log",
    "compaction",
    "records",
    "wire",
    "requests",
    "fetches",
    "share",
    "encryption",
    "idle_connections",
    "clients",
    "rest",
    "registry",
    "avro",
    "console",
    "queues",
    "dmqp",
    "against_kafka",
    "against_release",
    "spark",
    "spark_growth",
    "tables",
    "lake",
    "security",
    "acls",
    "cluster",
    "failover",
    "cluster_scale",
    "workers",
    "kit",
    "kit_suite",
]


def main() -> None:
    is_published = "--page" in sys.argv[1:]
    names = [each for each in sys.argv[1:] if each != "--page"] or (
        marked(PAGE.read_text()) if is_published else BENCHES
    )
    if is_published and (reason := why_not()):
        sys.exit(f"docs/performance.md is not changed: {reason}")
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHES)}")
    print(
        f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
    )
    for name in names:
        print(f"\n### {name}\n")
        measured = []
        for line in table(importlib.import_module(f"bench.{name}").rows()):
            print(line, flush=True)
            measured.append(line)
        if is_published:
            PAGE.write_text(with_table(PAGE.read_text(), name, "\n".join(measured)))


if __name__ == "__main__":
    main()
