"""Queues on the broker's HTTP port."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ottla.http.config import HttpConfig
from ottla.http.queues import handlers as queues
from ottla.http.queues.config import QueuesConfig
from ottla.queue import Queue

from .serving import HttpBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUEUES = "/api/v1/queues"
DOCUMENTED = re.compile(r"^(GET|POST|DELETE) +(/api/\S+)", re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "queues"


@pytest.fixture
def served(tmp_path: Path, folder: Path) -> Iterator[HttpBroker]:
    queues = QueuesConfig(data_directory=folder, users={"ann": "secret"})
    config = HttpConfig(port=0, cors_origins=("https://app.example",))
    with HttpBroker(tmp_path / "broker", config, queues=queues) as served:
        yield served


def test_queues_are_served_beside_topics(served: HttpBroker, folder: Path) -> None:
    http = served.client
    assert http.get("/health").json()["status"] == "ok"
    assert http.get("/v1/topics").status_code == 200
    assert http.get(QUEUES).status_code == 401
    http.auth = ("ann", "secret")
    assert http.post(QUEUES, json={"name": "jobs"}).status_code == 201
    assert http.post(f"{QUEUES}/jobs/messages", content=b'"x"').json() == {"id": 0, "count": 1}
    answer = http.get(f"{QUEUES}/jobs/consumers/me/messages")
    assert [message["value"] for message in answer.json()["messages"]] == ["x"]
    assert http.post(f"{QUEUES}/jobs/consumers/me/commit").status_code == 200
    assert http.get(f"{QUEUES}/a%2Fb").status_code == 400
    assert f'route="{QUEUES}/{{queue}}/messages"' in http.get("/metrics").text
    with Queue(folder, "jobs", "read") as queue:
        assert len(queue) == 1


def test_a_configured_origin_may_write_to_queues(served: HttpBroker) -> None:
    served.client.auth = ("ann", "secret")
    for origin, status in (("https://evil.example", 403), ("https://app.example", 201)):
        answer = served.client.post(QUEUES, json={"name": "jobs"}, headers={"origin": origin})
        assert answer.status_code == status


def test_the_broker_closes_its_queues_when_it_stops(served: HttpBroker, folder: Path) -> None:
    served.client.auth = ("ann", "secret")
    served.client.post(QUEUES, json={"name": "jobs"})
    served.run(served.http.stop())
    Queue(folder, "jobs").close()


def test_the_description_has_every_endpoint_of_queues(served: HttpBroker) -> None:
    described = served.client.get("/v1/openapi.json").json()["paths"]
    found = {(method.upper(), path) for path, by in described.items() if path.startswith(QUEUES) for method in by}
    assert found == set(DOCUMENTED.findall(queues.__doc__ or ""))
    assert len(found) == 8
