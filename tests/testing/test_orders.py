"""The order service of the examples, through what can happen to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from examples.orders.service import GROUP, INVOICES, ORDERS, REJECTED, NotDelivered, OrderService

if TYPE_CHECKING:
    from ottla.testing import EphemeralBroker

QUICK = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "log_level": 0}


def order(number: int) -> str:
    return json.dumps({"number": number, "cents": 250})


def billed(broker: EphemeralBroker) -> list[str]:
    return [json.loads(record.value)["order"] for record in broker.records(INVOICES)]


def service(broker: EphemeralBroker, **options: Any) -> OrderService:
    return OrderService(broker.bootstrap_servers, **QUICK, **options)


def handle(worker: OrderService, count: int) -> None:
    for _ in range(count):
        assert worker.handle_one(20)


def test_each_order_is_billed_and_then_committed(ottla: EphemeralBroker) -> None:
    ottla.produce(ORDERS, order(1), order(2))
    with service(ottla) as worker:
        handle(worker, 2)
        ottla.wait_for_lag_zero(GROUP, ORDERS)
    assert billed(ottla) == ["1", "2"]
    order_of_work = [one.api for one in ottla.requests if one.api in ("Produce", "OffsetCommit")]
    assert order_of_work[:4] == ["Produce", "OffsetCommit", "Produce", "OffsetCommit"]


def test_what_kafka_refuses_for_a_moment_is_tried_again(ottla: EphemeralBroker) -> None:
    fault = ottla.faults.error("NOT_ENOUGH_REPLICAS", api="Produce", topic=INVOICES, times=2)
    ottla.produce(ORDERS, order(1))
    with service(ottla) as worker:
        handle(worker, 1)
    assert (fault.struck, billed(ottla)) == (2, ["1"])


def test_an_invoice_that_kafka_does_not_take_leaves_the_order_to_come_again(ottla: EphemeralBroker) -> None:
    ottla.produce(ORDERS, order(1))
    fault = ottla.faults.error("INVALID_RECORD", api="Produce", topic=INVOICES)
    with service(ottla) as worker, pytest.raises(NotDelivered):
        worker.handle_one(20)
    fault.remove()
    assert ottla.committed(GROUP) == {}
    with service(ottla) as worker:
        handle(worker, 1)
    assert billed(ottla) == ["1"]


def test_an_answer_that_is_lost_does_not_bill_twice(ottla: EphemeralBroker) -> None:
    ottla.produce(ORDERS, order(1))
    fault = ottla.faults.drop(api="Produce", topic=INVOICES, times=1, after_effect=True)
    with service(ottla) as worker:
        handle(worker, 1)
    assert (fault.struck, billed(ottla)) == (1, ["1"])


def test_an_order_that_comes_twice_is_billed_once(ottla: EphemeralBroker) -> None:
    ottla.produce(ORDERS, order(1), order(1))
    with service(ottla) as worker:
        handle(worker, 2)
    assert billed(ottla) == ["1"]


def test_what_is_no_order_is_set_aside_and_the_next_is_billed(ottla: EphemeralBroker) -> None:
    ottla.produce(ORDERS, "{ poison", order(2))
    with service(ottla) as worker:
        handle(worker, 2)
    assert [record.value for record in ottla.records(REJECTED)] == [b"{ poison"]
    assert billed(ottla) == ["2"]


def test_a_worker_that_goes_silent_is_replaced(ottla: EphemeralBroker) -> None:
    ottla.create_topic(ORDERS)
    silent = {"session.timeout.ms": 60_000, "heartbeat.interval.ms": 50_000}
    with service(ottla, **silent) as first:
        ottla.produce(ORDERS, order(1))
        handle(first, 1)
        ottla.wait_for_group(GROUP, members=1)
        ottla.clock.advance(61)
        with service(ottla) as second:
            ottla.produce(ORDERS, order(2))
            handle(second, 1)
            ottla.wait_for_lag_zero(GROUP, ORDERS)
    assert billed(ottla) == ["1", "2"]


def test_an_outage_is_sat_out(ottla: EphemeralBroker) -> None:
    with service(ottla) as worker:
        with ottla.faults.drop() as outage:
            assert not worker.handle_one(0.05)
            outage.wait(times=2)
        ottla.produce(ORDERS, order(1))
        handle(worker, 1)
    assert billed(ottla) == ["1"]
