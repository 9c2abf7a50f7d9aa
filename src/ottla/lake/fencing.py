"""What a writer does after a commit that was refused or whose outcome is unknown. Pure rules."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.lake.covered import Covered


class Verdict(Enum):
    LANDED = auto()
    """The commit is in the table."""
    REPEAT = auto()
    """It is not, and the rows are as before: another program changed the table without adding records."""
    FENCED = auto()
    """Another writer has claimed the table."""
    CHANGED = auto()
    """The table has other offsets: it was rolled back."""


def judge(now: Covered, before: Covered, wanted: Covered) -> Verdict:
    """By the offsets that the table has now, and that it had before the commit."""
    if now.is_newer_writer(wanted):
        return Verdict.FENCED
    if now == wanted:
        return Verdict.LANDED
    return Verdict.REPEAT if now == before else Verdict.CHANGED


def judge_claim(now: Covered, wanted: Covered) -> Verdict:
    """The same for the commit that begins an epoch: of two that want the same epoch, the table has one."""
    return Verdict.LANDED if now == wanted else Verdict.REPEAT
