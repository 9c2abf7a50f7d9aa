"""Findings and their remedies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Judgement(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Works, or need not; but not as well as it could."""
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    subject: str
    judgement: Judgement
    text: str
    fix: str | None = None


def ok(subject: str, text: str) -> Finding:
    return Finding(subject, Judgement.OK, text)


def note(subject: str, text: str, fix: str) -> Finding:
    return Finding(subject, Judgement.NOTE, text, fix)


def wrong(subject: str, text: str, fix: str) -> Finding:
    return Finding(subject, Judgement.WRONG, text, fix)
