"""`make bench`: every measurement, or those named on the command line."""

from __future__ import annotations

import importlib
import os
import platform
import sys

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
    "console",
    "queues",
    "dmqp",
    "against_kafka",
    "spark",
    "spark_growth",
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
    names = sys.argv[1:] or BENCHES
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHES)}")
    print(
        f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
    )
    for name in names:
        print(f"\n### {name}\n")
        print(table(importlib.import_module(f"bench.{name}").rows()), flush=True)


if __name__ == "__main__":
    main()
