"""`make soak`: mixed load and restarts for a while; exit code 1 if the broker broke a promise."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

from bench.soak.report import report
from bench.soak.run import soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", type=Path, help="where to keep data and log; a temporary folder if not given")
    given = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="ottla-soak-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        outcome = soak(folder, given.seconds, given.seed)
    print(report(outcome, given.seconds, given.seed))
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
