"""Changes that no request of Kafka's makes, and logins that succeed, are in the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.broker.raw_client import RawClient

import ottla

from .securing import Secured, secured
from .test_gate import log_in
from .test_rest import served

if TYPE_CHECKING:
    from pathlib import Path


def changes(broker: Secured) -> list[tuple[str, str, list[str]]]:
    lines = (line for line in broker.audit() if line["event"] == "change")
    return [(line["api"], line["principal"], line["names"]) for line in lines]


def test_resets_of_groups_and_changes_of_queues_are_noted(tmp_path: Path) -> None:
    with secured(tmp_path) as broker, served(broker) as http, http.by("ann") as client:
        with broker.admin() as admin:
            admin.create_topic("t")
        body = {"to": "offsets", "offsets": [{"topic": "t", "partition": 0, "offset": 0}]}
        assert client.post("/v1/groups/g/reset", json={**body, "dry_run": True}).status_code == 200
        assert client.post("/v1/groups/g/reset", json=body).status_code == 200
        assert client.post("/api/v1/queues", json={"name": "jobs"}).status_code == 201
        assert client.delete("/api/v1/queues/jobs").status_code == 200
        assert changes(broker)[-3:] == [
            ("ResetGroup", "User:ann", ["g"]),
            ("CreateQueue", "User:ann", ["jobs"]),
            ("DeleteQueue", "User:ann", ["jobs"]),
        ]


def test_a_login_that_succeeds_is_noted_once(tmp_path: Path) -> None:
    with secured(tmp_path) as broker, served(broker) as http, http.by("bob") as client:
        with RawClient(broker.address("SASL_PLAINTEXT")) as raw:
            log_in(raw, "ann")
            log_in(raw, "ann")
        for _ in range(3):
            assert client.get("/v1/topics").status_code == 200
        logins = [(line["principal"], line["mechanism"]) for line in broker.audit() if line["event"] == "login"]
        assert logins == [("User:ann", "SCRAM-SHA-256"), ("User:bob", "basic")]


def test_a_data_folder_and_its_files_are_for_its_owner_alone(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path / "data") as broker, ottla.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"value").result(20)
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [str(path) for path in files if path.stat().st_mode & 0o077] == []
