"""Changes a catalog until killed, and reports acknowledged changes. Run as a separate process."""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path
from typing import Final

from ottla.storage.catalog.sqlite import SqliteCatalog

CONFIGS: Final = {f"key-{number}": "value" * 20 for number in range(20)}


def say(*words: object) -> None:
    # Unbuffered, so that reports are not lost with the process.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main(folder: Path) -> None:
    catalog = SqliteCatalog.open(folder)
    for number in count():
        block = catalog.next_producer_ids()
        say("ids", block.first, block.count)
        topic = catalog.create_topic(f"topic-{os.getpid()}-{number}", 3, CONFIGS)
        say("created", topic.name, topic.id)
        if number % 3 == 0:
            say("deleting", topic.name, topic.id)
            catalog.delete_topic(topic.id)
            say("deleted", topic.name, topic.id)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
