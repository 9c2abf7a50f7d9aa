"""The state of the registry behind its API: what is read before a change, and what changes wait for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.rest.serving import HttpBroker

from ottla.broker.interfaces import partition_facts
from ottla.broker.schemas import store
from ottla.core.errors import NotLeaderOrFollower
from ottla.registry.types.json import JsonSchema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.broker.interfaces.partition_facts import Bounds

PATIENCE_S = 20.0


@pytest.fixture
def http(tmp_path: Path) -> Iterator[httpx.Client]:
    with (
        HttpBroker(tmp_path) as served,
        httpx.Client(base_url=f"{served.url}/schema-registry", timeout=PATIENCE_S) as client,
    ):
        yield client


def register(http: httpx.Client, subject: str, schema: str, **more: Any) -> httpx.Response:
    return http.post(f"/subjects/{subject}/versions", json={"schema": schema, **more})


def test_a_slow_check_does_not_hold_up_other_requests(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert register(http, "slow", '{"type":"string"}', schemaType="JSON").status_code == 200
    begun, ends = threading.Event(), threading.Event()
    compared = JsonSchema.incompatibilities

    def slow(*given: Any, **more: Any) -> list[str]:
        begun.set()
        assert ends.wait(PATIENCE_S)
        return compared(*given, **more)

    monkeypatch.setattr(JsonSchema, "incompatibilities", slow)
    answers: list[httpx.Response] = []
    schema = '{"type":"string","title":"t"}'
    thread = threading.Thread(target=lambda: answers.append(register(http, "slow", schema, schemaType="JSON")))
    thread.start()
    try:
        assert begun.wait(PATIENCE_S)
        assert register(http, "other", '"int"').status_code == 200
        assert http.post("/subjects/other", json={"schema": '"int"'}).json()["version"] == 1
    finally:
        ends.set()
        thread.join(PATIENCE_S)
    assert answers[0].json()["version"] == 2


def test_nothing_is_registered_before_the_log_is_read_to_its_end(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert register(http, "s", '"int"').status_code == 200

    async def further(*given: Any) -> dict[Any, Bounds]:
        """As a node that has asked the previous leader for the end, and reads from a new one that is behind."""
        found = await partition_facts.bounds(*given)
        return {at: each._replace(end=each.end + 5) for at, each in found.items()}

    monkeypatch.setattr(store, "bounds", further)
    monkeypatch.setattr(store, "_PATIENCE_S", 0.0)
    refused = register(http, "s", '"long"')
    assert (refused.status_code, refused.json()["error_code"]) == (500, 50002)
    monkeypatch.undo()
    assert http.get("/subjects/s/versions").json() == [1]


def test_a_delete_whose_outcome_is_unknown_is_not_repeated(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert register(http, "s", '"int"').status_code == 200
    write = store.Store._write

    async def written_by_a_leader_that_is_deposed(self: store.Store, records: Any) -> None:
        await write(self, records)
        raise NotLeaderOrFollower("deposed while waiting for the ISR")

    monkeypatch.setattr(store.Store, "_write", written_by_a_leader_that_is_deposed)
    refused = http.delete("/subjects/s")
    assert (refused.status_code, refused.json()["error_code"]) == (500, 50002)
    monkeypatch.undo()
    assert http.get("/subjects").json() == []
