"""Registrations while the broker is killed: no id twice, no acknowledged schema lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
from tests.cli.serving import Serve

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 3
SCHEMAS_PER_ROUND = 20


def test_no_id_is_given_twice_and_no_acknowledged_schema_is_lost(tmp_path: Path) -> None:
    acknowledged: dict[str, int] = {}
    for turn in range(ROUNDS):
        with Serve(tmp_path, "--http-port", "0") as serve, httpx.Client(timeout=30) as client:
            url = serve.ready["schema_registry"]
            for subject, number in acknowledged.items():
                assert client.get(f"{url}/subjects/{subject}/versions/1").json()["id"] == number
            for at in range(SCHEMAS_PER_ROUND):
                subject = f"s{turn}-{at}"
                schema = json.dumps({"type": "record", "name": f"R{turn}_{at}", "fields": []})
                answer = client.post(f"{url}/subjects/{subject}/versions", json={"schema": schema})
                acknowledged[subject] = answer.json()["id"]
            serve.process.kill()
            serve.process.wait()
    assert len(set(acknowledged.values())) == len(acknowledged) == ROUNDS * SCHEMAS_PER_ROUND
