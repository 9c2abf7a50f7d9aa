from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ottla.cli.messages.starting_points import AtOffset, AtTime, Beginning, End, LastFew, StartingPoint, starting_point
from ottla.core.errors import ConfigError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("beginning", Beginning()),
        ("end", End()),
        ("0", AtOffset(0)),
        ("42", AtOffset(42)),
        ("-10", LastFew(10)),
        ("30s", AtTime(NOON_MS - 30_000)),
        ("15m", AtTime(NOON_MS - 900_000)),
        ("2h", AtTime(NOON_MS - 7_200_000)),
        ("1d", AtTime(NOON_MS - 86_400_000)),
        ("2026-01-01T12:00:00Z", AtTime(NOON_MS)),
    ],
)
def test_every_kind_of_position_is_parsed(text: str, point: StartingPoint) -> None:
    assert starting_point(text, NOON) == point


@pytest.mark.parametrize("text", ["", "start", "-", "1.5", "15 minutes", "2026-13-01"])
def test_an_invalid_position_is_refused_with_the_valid_ones(text: str) -> None:
    with pytest.raises(ConfigError, match="expected earliest, latest, an offset"):
        starting_point(text, NOON)
