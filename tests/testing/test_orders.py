"""The order service of the examples with each client, under faults."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from examples.orders.rules import GROUP, INVOICES, ORDERS, REJECTED, NotDelivered

from . import order_services

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.testing import EphemeralBroker

    from .order_services import Service

    Make = Callable[..., Service]


@pytest.fixture(params=["confluent", "aiokafka", "kafka_python"])
def service(request: pytest.FixtureRequest, ottla: EphemeralBroker) -> Make:
    return lambda name="worker": getattr(order_services, request.param)(ottla.bootstrap_servers, name)


def order(number: int) -> str:
    return json.dumps({"number": number, "cents": 250})


def billed(broker: EphemeralBroker) -> list[str]:
    return [json.loads(record.value)["order"] for record in broker.records(INVOICES)]


def handle(worker: Service, count: int) -> None:
    for _ in range(count):
        assert worker.handle_one(20)


def test_each_order_is_billed_and_then_committed(ottla: EphemeralBroker, service: Make) -> None:
    ottla.produce(ORDERS, order(1), order(2))
    with service() as worker:
        handle(worker, 2)
        ottla.wait_for_lag_zero(GROUP, ORDERS)
    assert billed(ottla) == ["1", "2"]
    order_of_work = [one.api for one in ottla.requests if one.api in ("Produce", "OffsetCommit")]
    assert order_of_work[:4] == ["Produce", "OffsetCommit", "Produce", "OffsetCommit"]


def test_transient_errors_are_retried(ottla: EphemeralBroker, service: Make) -> None:
    fault = ottla.faults.error("NOT_ENOUGH_REPLICAS", api="Produce", topic=INVOICES, times=2)
    ottla.produce(ORDERS, order(1))
    with service() as worker:
        handle(worker, 1)
    assert (fault.struck, billed(ottla)) == (2, ["1"])


def test_an_order_whose_invoice_fails_is_redelivered(ottla: EphemeralBroker, service: Make) -> None:
    ottla.produce(ORDERS, order(1))
    fault = ottla.faults.error("MESSAGE_TOO_LARGE", api="Produce", topic=INVOICES)
    with service() as worker, pytest.raises(NotDelivered):
        worker.handle_one(20)
    fault.remove()
    assert ottla.committed(GROUP) == {}
    with service() as worker:
        handle(worker, 1)
    assert billed(ottla) == ["1"]


def test_a_lost_response_does_not_bill_twice(ottla: EphemeralBroker, service: Make) -> None:
    ottla.produce(ORDERS, order(1))
    fault = ottla.faults.drop(api="Produce", topic=INVOICES, times=1, after_effect=True)
    with service() as worker:
        handle(worker, 1)
    assert (fault.struck, billed(ottla)) == (1, ["1"])


def test_an_order_that_comes_twice_is_billed_once(ottla: EphemeralBroker, service: Make) -> None:
    ottla.produce(ORDERS, order(1), order(1))
    with service() as worker:
        handle(worker, 2)
    assert billed(ottla) == ["1"]


def test_an_invalid_order_is_set_aside_and_the_next_is_billed(ottla: EphemeralBroker, service: Make) -> None:
    ottla.produce(ORDERS, "{ poison", order(2))
    with service() as worker:
        handle(worker, 2)
    assert [record.value for record in ottla.records(REJECTED)] == [b"{ poison"]
    assert billed(ottla) == ["2"]


def test_another_worker_takes_over_from_an_expired_one(ottla: EphemeralBroker, service: Make) -> None:
    ottla.produce(ORDERS, order(1))
    with service("first") as first:
        handle(first, 1)
        ottla.wait_for_lag_zero(GROUP, ORDERS)
        ottla.wait_for_group(GROUP, members=1)
        # As long as it hangs it does not come back.
        hanging = ottla.faults.pause(api="JoinGroup", client_id="first")
        assert ottla.faults.expire_session(GROUP, client_id="first").struck == 1
        with service("second") as second:
            ottla.produce(ORDERS, order(2))
            handle(second, 1)
            ottla.wait_for_lag_zero(GROUP, ORDERS)
        hanging.remove()
    assert billed(ottla) == ["1", "2"]


def test_an_outage_is_survived(ottla: EphemeralBroker, service: Make) -> None:
    ottla.produce(ORDERS, order(1))
    with service() as worker:
        handle(worker, 1)
        ottla.restart()
        with ottla.faults.drop() as outage:
            assert not worker.handle_one(0.05)
            outage.wait(times=2)
        ottla.produce(ORDERS, order(2))
        handle(worker, 1)
    assert billed(ottla) == ["1", "2"]
