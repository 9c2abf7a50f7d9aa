"""Karapace and Ottla take over each other's `_schemas`."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from interop.karapace import karapace_on, karapace_python
from interop.ottla_server import ottla_server

KARAPACE = karapace_python()
pytestmark = pytest.mark.skipif(KARAPACE is None, reason="KARAPACE names no Python interpreter that has Karapace")


def record(*names: str) -> str:
    fields = [{"name": name, "type": "string", "default": ""} for name in names]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def register(url: str, subject: str, schema: str, **more: object) -> int:
    answer = httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": schema, **more}, timeout=30)
    assert answer.status_code == 200, answer.text
    number: int = answer.json()["id"]
    return number


def content(url: str) -> dict[str, object]:
    """All subjects with their versions, which of them are not deleted, and their compatibility levels."""

    def get(path: str) -> Any:  # noqa: ANN401 - JSON
        return httpx.get(url + path, timeout=30).json()

    found: dict[str, object] = {}
    for subject in sorted(get("/subjects?deleted=true")):
        live = get(f"/subjects/{subject}/versions")
        versions = {}
        for number in get(f"/subjects/{subject}/versions?deleted=true"):
            told = get(f"/subjects/{subject}/versions/{number}?deleted=true")
            # Karapace omits the type of Avro schemas, as releases before 8.0 of Confluent's registry did.
            kind, references = told.get("schemaType", "AVRO"), told.get("references", [])
            versions[number] = (told["id"], kind, json.loads(told["schema"]), references)
        found[subject] = (
            live if isinstance(live, list) else live["error_code"],
            get(f"/config/{subject}").get("compatibilityLevel"),
            versions,
        )
    return found


def write_everything(url: str, name: str) -> dict[str, int]:
    """Registers, refers, configures and deletes: returns the ids by what they are."""
    ids = {
        "first": register(url, f"{name}-orders", record("a")),
        "second": register(url, f"{name}-orders", record("a", "b")),
        "json": register(url, f"{name}-json", '{"type": "object"}', schemaType="JSON"),
    }
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "Order"}]}
    references = [{"name": "Order", "subject": f"{name}-orders", "version": 1}]
    ids["basket"] = register(url, f"{name}-basket", json.dumps(basket), references=references)
    assert httpx.put(f"{url}/config/{name}-orders", json={"compatibility": "FULL"}, timeout=30).status_code == 200
    for subject in ("hidden", "gone"):
        register(url, f"{name}-{subject}", record("a", subject))
        assert httpx.delete(f"{url}/subjects/{name}-{subject}", timeout=30).status_code == 200
    assert httpx.delete(f"{url}/subjects/{name}-gone?permanent=true", timeout=30).status_code == 200
    return ids


def test_karapace_continues_with_our_schemas_and_we_with_its(tmp_path: Path) -> None:
    assert KARAPACE is not None
    with ottla_server(tmp_path, serves_http=True) as server:
        ours = f"http://{server.http}/schema-registry"
        by_us = write_everything(ours, "ours")
        before = content(ours)
        with karapace_on(KARAPACE, server.bootstrap, tmp_path / "karapace.log") as theirs:
            seen = content(theirs)
            seen.pop("ready")  # by which the fixture finds out whether it accepts schemas
            assert seen == before
            assert register(theirs, "ours-orders", record("b", "a")) not in by_us.values()
            by_them = write_everything(theirs, "theirs")
            after = content(theirs)
        assert content(ours) == after
        new = register(ours, "theirs-orders", record("a", "b", "c"))
        assert new > max(*by_us.values(), *by_them.values())
        last = content(ours)
    with ottla_server(tmp_path, serves_http=True) as server:
        assert content(f"http://{server.http}/schema-registry") == last
        with karapace_on(KARAPACE, server.bootstrap, tmp_path / "karapace.log") as theirs:
            assert content(theirs) == last


def test_we_take_over_a_topic_that_karapace_created(tmp_path: Path) -> None:
    assert KARAPACE is not None
    with ottla_server(tmp_path, serves_http=True) as server:
        with karapace_on(KARAPACE, server.bootstrap, tmp_path / "karapace.log") as theirs:
            ids = write_everything(theirs, "theirs")
            written = content(theirs)
        ours = f"http://{server.http}/schema-registry"
        assert content(ours) == written
        assert register(ours, "ours-orders", record("z")) > max(ids.values())
        assert register(ours, "ours-copy", record("a")) == ids["first"]
