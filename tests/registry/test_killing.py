"""Registrations while the broker is killed: no id twice, no acknowledged schema lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.serving import Serve
from tests.registry.registering import Registering, check

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 3
SCHEMAS_PER_ROUND = 20
THREADS = 4


def test_no_id_is_assigned_twice_and_no_acknowledged_schema_is_lost(tmp_path: Path) -> None:
    acknowledged: dict[str, int] = {}
    for turn in range(ROUNDS + 1):
        with Serve(tmp_path, "--http-port", "0") as serve:
            url: str = serve.ready["schema_registry"]
            check(url, acknowledged)
            if turn == ROUNDS:
                break
            with Registering(f"s{turn}", [lambda url=url: url] * THREADS) as registering:  # type: ignore[misc]
                registering.wait_for(SCHEMAS_PER_ROUND)
                serve.process.kill()
                serve.process.wait()
            acknowledged |= registering.acknowledged
    assert len(set(acknowledged.values())) == len(acknowledged) >= ROUNDS * SCHEMAS_PER_ROUND
