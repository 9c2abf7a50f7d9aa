"""Lengths of time as options (30s, 5m, 12h, 7d), and points in time as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

import click

_FORM: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Duration(click.ParamType[float]):
    """In seconds."""

    name = "duration"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = _FORM.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"invalid duration {value!r} (use e.g. 30s, 5m, 12h, 7d)", param, ctx)
        return int(match[1]) * _UNIT_S[match[2]]


def time_text(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
