"""`ottla.Admin`: every method of the async client, blocking."""

from __future__ import annotations

import inspect

import pytest

import ottla
from ottla.client.admin.admin import Admin as AsyncAdmin
from ottla.client.errors import BrokerError, ClientClosed
from ottla.core.errors import ErrorCode


def public(admin: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(admin, inspect.isfunction) if not name.startswith("_")}


def test_it_has_every_method_of_the_async_client() -> None:
    assert public(ottla.Admin) - {"close", "run"} == public(AsyncAdmin)


def test_calls_block_until_done() -> None:
    with ottla.Broker() as broker, ottla.Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("orders", partitions=3)
        with pytest.raises(BrokerError) as refused:
            admin.create_topic("orders")

        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert admin.list_topics() == ["orders"]
        assert len(admin.describe_topic("orders").partitions) == 3
        admin.delete_topic("orders")
        assert admin.list_topics() == []
    with pytest.raises(ClientClosed, match="the admin client is closed"):
        admin.list_topics()
