"""Names of archive files, which are authoritative for the offsets they contain. Pure rules.

`orders/date=2026-11-15/partition-0_00000000000000000000-00000000000000001000_1of2.parquet`: of the offsets 0 to 999 of
partition 0, those records that are of this day. The others are in the other one of these two files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""What tools that know such folders read as null. It sorts behind all dates."""
DAY_MS: Final = 24 * 3600 * 1000

_NAME: Final = re.compile(r"date=([^/]+)/partition-(\d+)_(\d{20})-(\d{20})_(\d+)of(\d+)\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Offsets of a partition that are published together, from `start` to below `end`."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileName:
    date: str
    span: Span
    number: int
    count: int

    def __str__(self) -> str:
        span = self.span
        offsets = f"{span.start:020}-{span.end:020}"
        return f"date={self.date}/partition-{span.partition}_{offsets}_{self.number}of{self.count}.parquet"


def parse(text: str) -> FileName | None:
    """None for a file that is not of an archive."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    partition, start, end, number, count = map(int, match.groups()[1:])
    return FileName(match[1], Span(partition, start, end), number, count)


def date_of(day: int) -> str:
    """The date of a day, counted from 1970."""
    try:
        return datetime.fromtimestamp(day * (DAY_MS // 1000), UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return NO_DATE
