"""Bar charts for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"


def bars(values: Sequence[float], labels: Sequence[str], height: int = 8) -> list[str]:
    """Vertical bars, one column each, with the highest value at the side and the first and last label below."""
    if not values:
        return ["(nothing yet)"]
    most = max(values) or 1.0
    lines = []
    for level in range(height, 0, -1):
        row = "".join(_BLOCKS[_eighths(value / most * height - (level - 1))] for value in values)
        side = f"{most:>9,.0f}" if level == height else " " * 9
        lines.append(f"{side} │{row}")
    lines.append(f"{'0':>9} └{'─' * len(values)}")
    between = max(1, len(values) - len(labels[0]) - len(labels[-1]))
    lines.append(" " * 11 + labels[0] + " " * between + labels[-1])
    return lines


def _eighths(part: float) -> int:
    return min(8, max(0, round(part * 8)))


def share(name: str, value: float, total: float, width: int = 40) -> str:
    """A horizontal bar."""
    filled = round(width * value / total) if total else 0
    return f"{name:>14} {'█' * filled}{'·' * (width - filled)} {value:,.0f}"
