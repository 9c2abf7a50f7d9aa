"""The result of a soak as a table, followed by the violations."""

from __future__ import annotations

from bench.soak.run import Outcome
from bench.soak.verify import MOST_GROWTH, SHORTEST_JUDGED_S, WARM_UP_SHARE

MOST_TOLD = 20
MIB = 1 << 20


def report(outcome: Outcome, seconds: float, seed: int) -> str:
    counts, records = outcome.ledger.counts, outcome.records
    stops = ", ".join(f"{count} by {how}" for how, count in outcome.stops.items())
    told = {
        "seconds of load, seed": f"{seconds:,.0f}, {seed}",
        "stops": stops,
        "records acknowledged": f"{records.acknowledged:,}",
        "of them deleted by retention since": f"{records.expired:,}",
        "repeated by producers without idempotence": f"{records.duplicates:,}",
        "records given up on by producers": f"{len(outcome.ledger.failures):,}",
        "records consumed by the group": f"{counts['consumed by the group']:,}",
        "assignments in rebalances": f"{counts['assignments']:,}",
        "commits acknowledged, refused": f"{counts['commits']:,}, {counts['commits refused']:,}",
        "looks at what is committed": f"{counts['looks at commits']:,}",
        "admin calls done, refused": f"{counts['admin calls']:,}, {counts['admin calls refused']:,}",
        "resident memory since the last restart": _memory(outcome),
        "growth of memory after the warm-up": _growth(outcome),
        "promises broken": f"{len(outcome.violations):,}",
    }
    lines = ["| what | |", "|---|---|", *(f"| {what} | {value} |" for what, value in told.items())]
    if outcome.violations:
        lines += ["", *outcome.violations[:MOST_TOLD]]
    if len(outcome.violations) > MOST_TOLD:
        lines.append(f"and {len(outcome.violations) - MOST_TOLD} more")
    return "\n".join(lines)


def _memory(outcome: Outcome) -> str:
    sizes = [sample.resident_bytes / MIB for sample in outcome.memory]
    return f"{min(sizes):.1f} to {max(sizes):.1f} MiB"


def _growth(outcome: Outcome) -> str:
    if outcome.growth is None:
        return f"not judged: less than {SHORTEST_JUDGED_S} s without a restart"
    rule = f"line through all but the first {WARM_UP_SHARE:.0%}; at most {MOST_GROWTH:.0%}"
    return f"{outcome.growth:+.1%} ({rule})"
