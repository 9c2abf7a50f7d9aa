"""`python -m examples.shop`: the demonstration, in a folder that stays."""

from __future__ import annotations

import argparse
import logging
import shutil
from pathlib import Path

from examples.shop.demo import Demo, Plan


def main() -> None:
    parser = argparse.ArgumentParser(prog="make demo", description="A shop, three pipelines, and a picture.")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where everything is kept")
    parser.add_argument("--minutes", type=int, default=45, help="of the shop's day; each lasts a second")
    parser.add_argument("--orders", type=int, default=40, help="in a minute")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    if given.folder.exists():
        shutil.rmtree(given.folder)
    Demo(Plan(folder=given.folder.resolve(), minutes=given.minutes, orders_per_minute=given.orders)).run()


if __name__ == "__main__":
    main()
