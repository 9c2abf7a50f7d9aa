"""`python -m tests.simulation`: histories by seed, each in a separate process. See docs/simulation.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .twice import TRACE, run_twice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .history import Outcome
    from .plans import Plan

_real_s = time.perf_counter


def main() -> int:
    options = _options()
    if options.twice:
        return run_twice([each for each in sys.argv[1:] if each != "--twice"])
    from . import edges
    from .mutants import MUTANTS

    edges.install()
    from . import warming

    warming.import_all()
    edges.install_in_product()
    if options.mutant is not None:
        mutant = MUTANTS[options.mutant]
        mutant.plant()
        options.profile = options.profile or mutant.profile
    return _one(options) if options.seed is not None or len(options.plan) == 1 else _many(options)


def _options() -> argparse.Namespace:
    from .mutants import MUTANTS
    from .plans import PROFILES, UNSAFE

    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    add = parser.add_argument
    add("--seed", type=int, help="run this history alone, and tell its story")
    add(
        "--plan", type=Path, nargs="+", default=[], help="run the histories of these files; a single one as with --seed"
    )
    add("--save", type=Path, help="with --seed: write the plan of the history to this file, after --shrink")
    add("--shrink", action="store_true", help="with --seed: look for the shortest story, for --seconds")
    add("--log", action="store_true", help="with --seed: show what the brokers log")
    add("--dump", type=Path, help="with --seed: write all that goes into the checksum of the history to this file")
    add("--first", type=int, default=0, help="the first seed of many")
    add("--histories", type=int, help="how many")
    add("--seconds", type=float, default=60, help="for how long, if nobody says how many")
    add("--jobs", type=int, default=1, help="how many at a time")
    add("--events", type=int, default=200, help="faults and actions of each history")
    add("--profile", choices=list(PROFILES | UNSAFE), help="of all histories; else it follows from the seed, too")
    add("--mutant", choices=list(MUTANTS), help="with this planted bug: run until it is found")
    add(
        "--twice",
        action="store_true",
        help="run each history in two processes, and compare",
    )
    add("--traces", action="store_true", help="print the checksum of each history")
    return parser.parse_args()


def _one(options: argparse.Namespace) -> int:
    from .plans import load, plan, save
    from .running import run_history

    planned = load(options.plan[0]) if options.plan else plan(options.seed, options.events, options.profile)
    if options.shrink:
        planned = _shrunk(planned, options.seconds)
    if options.save is not None:
        save(planned, options.save)
    outcome = run_history(planned, shows_log=options.log, dump=options.dump)
    _say(f"{planned.profile}, {planned.nodes} nodes, flush={planned.flush}", *outcome.story, _summary(outcome))
    _say(*(f"VIOLATION {violation}" for violation in outcome.violations[:20]))
    sys.stdout.flush()
    # Not the usual way: what is left of dead nodes would clean up after itself.
    os._exit(1 if outcome.violations else 0)


def _summary(outcome: Outcome) -> str:
    return (
        f"seed {outcome.seed}: {outcome.virtual_s:.1f} virtual s, {outcome.callbacks} callbacks, "
        f"{outcome.acknowledged} acknowledged, trace {outcome.trace:08x}"
    )


def _shrunk(planned: Plan, seconds: float) -> Plan:
    from .running import in_a_fork
    from .shrink import kinds_of, shrunk

    wanted = kinds_of(in_a_fork(planned))
    if not wanted:
        _say("nothing goes wrong")
        return planned
    until_s = _real_s() + seconds

    def goes_wrong(tried: Plan) -> bool:
        is_wrong = bool(wanted & kinds_of(in_a_fork(tried)))
        if is_wrong:
            print(f"{len(tried.events)} events go wrong", file=sys.stderr)  # noqa: T201
        return is_wrong

    return shrunk(planned, goes_wrong, lambda: _real_s() < until_s)


def _many(options: argparse.Namespace) -> int:
    from .plans import load, plan
    from .running import run_all

    began_s = _real_s()

    def plans() -> Iterator[Plan]:
        if options.plan:
            yield from map(load, options.plan)
            return
        seed = options.first
        while seed < options.first + options.histories if options.histories else _real_s() - began_s < options.seconds:
            yield plan(seed, options.events, options.profile)
            seed += 1

    outcomes: list[Outcome] = []
    bad = 0
    for planned, outcome in run_all(plans(), options.jobs, is_traced=options.traces):
        problems = [outcome] if isinstance(outcome, str) else outcome.violations
        if not isinstance(outcome, str):
            outcomes.append(outcome)
            if options.traces:
                _say(f"{TRACE} {planned.seed} {outcome.trace:08x}")
        if problems:
            bad += 1
            if options.mutant is not None:
                _say(f"{options.mutant} is found by seed {planned.seed}: {problems[0]}")
                return 0
            _say(
                f"seed {planned.seed} ({planned.profile}): {len(problems)} violations, such as",
                *(f"    {one}" for one in problems[:4]),
            )
    took_s = _real_s() - began_s
    _say(
        f"{len(outcomes)} histories in {took_s:.1f} s ({len(outcomes) / took_s * 60:.0f} a minute) with "
        f"{sum(outcome.events for outcome in outcomes)} faults and actions, "
        f"{sum(outcome.virtual_s for outcome in outcomes):.0f} virtual s and "
        f"{sum(outcome.acknowledged for outcome in outcomes)} acknowledged records: {bad} with violations"
    )
    return 1 if bad else 0


def _say(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
