"""Logging of the broker to standard error, as text or JSON lines."""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

from ottla.net.rates import Bucket

_LONGEST: Final = 1000
_LINES_PER_S: Final = 100
_BUCKETS: Final = 1000

_ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {
    9: "\\t",
    10: "\\n",
    13: "\\r",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
"""Of characters that could begin another line, or do something to a terminal."""


def _cut(message: str) -> str:
    """Truncates and escapes messages: clients may send very long names, or names with newlines."""
    message = message.translate(_ESCAPES)
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}... ({len(message)} characters)"


class RateFilter(logging.Filter):
    """Rate limit: passes at most a hundred lines of one kind per second, except errors; the rest is counted."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets: dict[str, tuple[Bucket, list[int]]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            return True
        if len(self._buckets) >= _BUCKETS:
            self._buckets.clear()
        bucket, suppressed = self._buckets.setdefault(str(record.msg), (Bucket(), [0]))
        if not bucket.admits(_LINES_PER_S, record.created):
            suppressed[0] += 1
            return False
        if suppressed[0]:
            record.msg = f"{_cut(record.getMessage())} ({suppressed[0]} lines like this were suppressed before)"
            record.args = ()
            suppressed[0] = 0
        return True


class _TextFormatter(logging.Formatter):
    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._who = "" if worker is None else f"worker {worker}: "

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        text = (
            f"{at}.{int(record.msecs):03d}Z {record.levelname:<8} {self._who}{record.name}: {_cut(record.getMessage())}"
        )
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
            "message": _cut(record.getMessage()),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def set_up_logging(level: str, style: str, worker: int | None = None) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RateFilter())
    handler.setFormatter(_JsonFormatter(worker) if style == "json" else _TextFormatter(worker))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    if level != "debug":
        # It warns of every connection attempt, once a second while ZooKeeper is down; we log the outcome.
        logging.getLogger("kazoo").setLevel(logging.ERROR)
