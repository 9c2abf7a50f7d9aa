"""Times in files and options."""

from __future__ import annotations

from datetime import UTC, datetime

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.fields import duration_ms


def moment_ms(text: str, now_ms: int) -> int:
    """2026-11-15, 2026-11-15T09:30 (UTC unless it has an offset), milliseconds since 1970, or 2h for two hours ago."""
    if text.isascii() and text.isdigit() and len(text) > 8:  # noqa: PLR2004 - shorter ones are dates without dashes
        return int(text)
    if text == "now":
        return now_ms
    if (ago := duration_ms(text)) is not None:
        return now_ms - ago
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{text!r} is not a valid time (use e.g. 2026-11-15T09:30, or 2h for two hours ago)"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def shown(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
