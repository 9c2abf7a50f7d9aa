"""The audit log has changes made over REST and successful logins."""

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


def test_group_resets_and_queue_changes_are_audited(tmp_path: Path) -> None:
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


def test_a_successful_login_is_audited_once(tmp_path: Path) -> None:
    with secured(tmp_path) as broker, served(broker) as http, http.by("bob") as client:
        with RawClient(broker.address("SASL_PLAINTEXT")) as raw:
            log_in(raw, "ann")
            log_in(raw, "ann")
        for _ in range(3):
            assert client.get("/v1/topics").status_code == 200
        logins = [(line["principal"], line["mechanism"]) for line in broker.audit() if line["event"] == "login"]
        assert logins == [("User:ann", "SCRAM-SHA-256"), ("User:bob", "basic")]


def test_a_data_folder_and_its_files_are_readable_by_the_owner_only(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path / "data") as broker, ottla.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"value").result(20)
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [str(path) for path in files if path.stat().st_mode & 0o077] == []
