"""Writes tables into docs/performance.md, so that no figure there is typed by hand."""

from __future__ import annotations

import os
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
_MOST_LOAD_PER_CORE = 0.25
_END = "<!-- end of bench -->\n"


def with_table(page: str, name: str, table: str) -> str:
    """The page with this table between the marks of the benchmark; KeyError if it has none."""
    before, start, rest = page.partition(f"<!-- bench: {name} -->\n")
    _, end, after = rest.partition(_END)
    if not start or not end:
        raise KeyError(f"docs/performance.md has no place for the table of {name}")
    return f"{before}{start}{table}\n{end}{after}"


def marked(page: str) -> list[str]:
    """The benchmarks whose tables are on the page."""
    return [part.partition(" -->")[0] for part in page.split("<!-- bench: ")[1:]]


def why_not() -> str | None:
    """Why figures measured now must not be published."""
    if os.environ.get("BENCH_SHORT"):
        return "BENCH_SHORT is set"
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return f"the machine is busy (load {load:.2f})" if load > _MOST_LOAD_PER_CORE * cores else None
