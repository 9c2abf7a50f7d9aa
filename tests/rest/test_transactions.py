"""Transactions over REST: listed, shown, aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.client.errors import ProducerFenced

if TYPE_CHECKING:
    import httpx

    from .serving import HttpBroker


def test_a_transaction_is_listed_and_shown(http: httpx.Client, served: HttpBroker, topic: str) -> None:
    with ottla.Producer(served.servers, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"1", partition=0)
            producer.flush()
            listed = http.get("/v1/transactions", params={"state": "Ongoing"}).json()["transactions"]
            assert topic in [one["id"] for one in listed]
            shown = http.get(f"/v1/transactions/{topic}").json()
            assert shown["partitions"] == [{"topic": topic, "partition": 0}]
            assert shown["started_ms"] is not None
            longer = http.get("/v1/transactions", params={"longer_than_ms": 3_600_000}).json()
            assert longer == {"transactions": []}
        shown = http.get(f"/v1/transactions/{topic}").json()
        assert (shown["state"], shown["partitions"]) == ("CompleteCommit", [])
        assert shown["started_ms"] is not None


def test_a_transaction_is_aborted_and_its_producer_fenced(http: httpx.Client, served: HttpBroker, topic: str) -> None:
    with (  # noqa: PT012
        ottla.Producer(served.servers, transactional_id=topic) as producer,
        pytest.raises(ProducerFenced),
        producer.transaction(),
    ):
        producer.send(topic, b"never seen", partition=0)
        producer.flush()
        assert http.delete(f"/v1/transactions/{topic}").status_code == 200
        assert http.get(f"/v1/transactions/{topic}").json()["state"] != "Ongoing"


def test_an_unknown_id_is_not_found_and_not_created(http: httpx.Client) -> None:
    for method in ("GET", "DELETE"):
        refused = http.request(method, "/v1/transactions/nobody")
        assert refused.status_code == 404
        assert "nobody" in refused.json()["detail"]
    assert "nobody" not in [one["id"] for one in http.get("/v1/transactions").json()["transactions"]]
