"""What the broker says of itself, on standard error: a line each, for people or for programs."""

from __future__ import annotations

import logging
import sys
import time


class _TextFormatter(logging.Formatter):
    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._who = "" if worker is None else f"worker {worker}: "

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        text = f"{at}.{int(record.msecs):03d}Z {record.levelname:<8} {self._who}{record.name}: {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _JsonFormatter(logging.Formatter):
    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._who = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        import json  # only now: a start without it need not wait for it

        entry: dict[str, object] = {
            **self._who,
            "at_ms": int(record.created * 1000),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def set_up_logging(level: str, style: str, worker: int | None = None) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter(worker) if style == "json" else _TextFormatter(worker))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    if level != "debug":
        # It warns of every attempt to connect, once a second while ZooKeeper is away; what came of them is told by us.
        logging.getLogger("kazoo").setLevel(logging.ERROR)
