"""Aborting transactions with the admin client; `tests/cli/test_transaction.py` has the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.client.errors import BrokerError
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.testing import broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.testing.ephemeral import EphemeralBroker


@pytest.fixture
def served() -> Iterator[EphemeralBroker]:
    with broker() as served:
        yield served


def test_a_concurrent_abort_is_retried(served: EphemeralBroker) -> None:
    with (
        ottla.Producer(served.bootstrap_servers, transactional_id="id"),
        ottla.Admin(served.bootstrap_servers, backoff_first_ms=1) as admin,
    ):
        before = admin.describe_transaction("id")
        fault = served.faults.error(ErrorCode.CONCURRENT_TRANSACTIONS, api="InitProducerId", times=2)
        admin.end_transactions_of("id")
        assert fault.is_spent
        assert admin.describe_transaction("id").producer_epoch > before.producer_epoch


def test_an_unknown_partition_is_an_error(served: EphemeralBroker) -> None:
    with ottla.Admin(served.bootstrap_servers) as admin:
        [(_, refused)] = admin.describe_producers([TopicPartition("nowhere", 0)]).items()
    assert isinstance(refused, BrokerError)
    assert refused.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
