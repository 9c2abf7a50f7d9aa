"""Faults over REST, for tests in other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from tests.rest.serving import HttpBroker

from ottla.broker.faults.faults import Faults
from ottla.broker.faults.watching import watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    async def enable(broker: HttpBroker) -> None:
        watch(broker.broker, Faults())

    with HttpBroker(tmp_path_factory.mktemp("broker")) as broker:
        broker.run(enable(broker))
        yield broker


@pytest.fixture
def rest(failing: HttpBroker) -> httpx.Client:
    failing.client.delete("/v1/faults")
    return failing.client


def add(rest: httpx.Client, **fault: Any) -> Any:
    answer = rest.post("/v1/faults", json=fault)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_fault_affects_kafka_clients_and_counts_its_hits(failing: HttpBroker, rest: httpx.Client) -> None:
    fault = add(rest, kind="error", code="NOT_LEADER_OR_FOLLOWER", api="Produce", topic="t", times=2)
    assert (fault["struck"], fault["times"], fault["where"]) == (0, 2, {"api": "Produce", "topic": "t"})
    producer = Producer({"bootstrap.servers": failing.servers, "retry.backoff.ms": 10, "log_level": 0})
    producer.produce("t", b"x")
    assert producer.flush(20) == 0
    assert rest.get(f"/v1/faults/{fault['id']}").json()["struck"] == 2


def test_faults_are_listed_and_removed(rest: httpx.Client) -> None:
    first = add(rest, kind="drop", client_id="nobody", after_effect=True)
    second = add(rest, kind="fill_disk", topic="nothing")
    assert [one["id"] for one in rest.get("/v1/faults").json()["faults"]] == [first["id"], second["id"]]
    assert rest.delete(f"/v1/faults/{first['id']}").json()["kind"] == "drop"
    assert rest.get(f"/v1/faults/{first['id']}").status_code == 404
    assert rest.delete("/v1/faults").json() == {"done": True}
    assert rest.get("/v1/faults").json() == {"faults": []}


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "lose_leadership", "topic": "nothing", "partition": 3},
        {"kind": "delay", "seconds": 0.5, "group": "nobody"},
        {"kind": "throttle", "seconds": 1, "api": "Fetch", "topic": "nothing"},
        {"kind": "truncate", "transactional_id": "nobody"},
        {"kind": "corrupt", "topic": "nothing"},
        {"kind": "pause", "client_id": "nobody"},
        {"kind": "fail_fsync", "topic": "nothing", "times": 1},
    ],
    ids=lambda fault: fault["kind"],
)
def test_every_other_kind_can_be_added(rest: httpx.Client, fault: dict[str, Any]) -> None:
    assert add(rest, **fault)["kind"] == fault["kind"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"kind": "error"}, "needs code"),
        ({"kind": "error", "code": "NONSENSE"}, "no such error code: NONSENSE"),
        ({"kind": "delay", "seconds": 1, "code": "NONE"}, "does not take code"),
        ({"kind": "drop", "api": "Produse"}, "did you mean 'Produce'?"),
        ({"kind": "melt"}, "invalid value `melt`, at $.kind; known: `corrupt`"),
    ],
)
def test_an_invalid_fault_is_refused(rest: httpx.Client, fault: dict[str, Any], said: str) -> None:
    answer = rest.post("/v1/faults", json=fault)
    assert answer.status_code == 400
    assert said in answer.json()["detail"]


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "force_rebalance", "group": "nobody"},
        {"kind": "expire_session", "group": "nobody"},
        {"kind": "expire_transaction", "transactional_id": "nobody"},
    ],
    ids=lambda fault: fault["kind"],
)
def test_expiring_an_unknown_group_or_transaction_is_not_found(rest: httpx.Client, fault: dict[str, Any]) -> None:
    answer = rest.post("/v1/faults", json=fault)
    assert answer.status_code == 404
    assert "nothing matches" in answer.json()["detail"]


def test_a_broker_without_fault_injection_refuses_faults(http: httpx.Client) -> None:
    answer = http.post("/v1/faults", json={"kind": "drop"})
    assert answer.status_code == 403
    assert "--enable-faults" in answer.json()["hint"]
    assert http.get("/v1/faults").status_code == 403
