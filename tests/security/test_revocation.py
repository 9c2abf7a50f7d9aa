"""Revocation of rights also affects waiting requests and open connections."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.broker.raw_client import HungUpError, RawClient

import ottla
from ottla.client.admin.acls import Acl, AclFilter
from ottla.core.errors import ErrorCode
from ottla.core.security import AclOperation, ResourceType
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest

from .securing import PASSWORDS, Secured
from .test_gate import log_in
from .test_rest import Served, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.broker.partition import Partition

PATIENCE_S = 20.0
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture(autouse=True)
def _prepared(guarded: Secured) -> Iterator[None]:
    with guarded.admin() as admin:
        admin.create_topic("t")
        admin.set_password("ann", PASSWORDS["ann"])
        admin.create_acls([Acl("User:ann", AclOperation.ALL, ResourceType.TOPIC, "t")])
        yield
        admin.delete_topics(["t"])
        admin.delete_acls(AclFilter())


@pytest.fixture
def ann(guarded: Secured) -> Iterator[RawClient]:
    with RawClient(guarded.address("SASL_PLAINTEXT"), timeout_s=PATIENCE_S) as client:
        assert log_in(client, "ann").error_code == ErrorCode.NONE
        yield client


@pytest.fixture(scope="module")
def rest(guarded: Secured) -> Iterator[Served]:
    with served(guarded) as http:
        yield http


def until(is_so: Callable[[], Any]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def partition(guarded: Secured) -> Partition:
    return guarded.embedded.broker.topics.partition("t", 0)


def written(guarded: Secured) -> int:
    """The number of records, read on the broker's loop."""

    async def look() -> int:
        return partition(guarded).log.next_offset

    assert guarded.embedded._loop is not None
    return asyncio.run_coroutine_threadsafe(look(), guarded.embedded._loop).result(PATIENCE_S)


def fetching(session_epoch: int = -1) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=round(PATIENCE_S * 1000),
        min_bytes=1,
        session_epoch=session_epoch,
        topics=(FetchTopic(topic="t", partitions=(wanted,)),),
    )


def produce(guarded: Secured) -> None:
    with ottla.Producer(guarded.address("SASL_SSL"), security=guarded.login()) as producer:
        producer.send("t", b"secret").result(PATIENCE_S)


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_a_waiting_fetch_gets_nothing_after_read_is_revoked(
    guarded: Secured, ann: RawClient, session_epoch: int
) -> None:
    sent = ann.send(fetching(session_epoch), version=12)
    until(lambda: partition(guarded).waits)
    with guarded.admin() as admin:
        admin.delete_acls(AclFilter(principal="User:ann"))
    produce(guarded)
    [topic] = ann.receive(sent).responses
    assert [(one.error_code, bytes(one.records or b"")) for one in topic.partitions] == [(DENIED, b"")]


def test_connections_of_a_deleted_user_are_closed_with_their_waiting_requests(guarded: Secured, ann: RawClient) -> None:
    with RawClient(guarded.address("SASL_PLAINTEXT"), timeout_s=PATIENCE_S) as idle:
        log_in(idle, "ann")
        ann.send(fetching(), version=12)
        until(lambda: partition(guarded).waits)
        with guarded.admin() as admin:
            admin.delete_user("ann")
        produce(guarded)
        for client in (ann, idle):
            with pytest.raises((HungUpError, ConnectionError)):
                client.receive_frame()


def test_requests_of_a_deleted_user_are_refused(guarded: Secured, ann: RawClient) -> None:
    with guarded.admin() as admin:
        admin.delete_user("ann")
    with pytest.raises((HungUpError, ConnectionError)):
        ann.ask(MetadataRequest(topics=None))


@contextmanager
def tailing(rest: Served, **login: Any) -> Iterator[Iterator[tuple[str, Any]]]:
    """The events of a tail of the topic, as they come."""

    def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
        name = ""
        for line in lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))

    with (
        rest.client(**login) as client,
        client.stream("GET", "/v1/topics/t/tail") as response,
    ):
        assert response.status_code == 200
        until(lambda: partition(rest.broker).waits)
        yield events(response.iter_lines())


def test_a_tail_ends_when_the_topic_may_no_longer_be_read(rest: Served) -> None:
    with tailing(rest, auth=("ann", PASSWORDS["ann"])) as events:
        with rest.broker.admin() as admin:
            admin.delete_acls(AclFilter(principal="User:ann"))
        produce(rest.broker)
        name, told = next(events)
        assert (name, told["code"]) == ("end", DENIED.name)


def test_a_tail_of_a_deleted_user_ends(rest: Served) -> None:
    with tailing(rest, auth=("ann", PASSWORDS["ann"])) as events:
        with rest.broker.admin() as admin:
            admin.delete_user("ann")
        produce(rest.broker)
        name, told = next(events)
        assert (name, told["status"]) == ("end", 401)


def test_a_tail_ends_when_its_token_expires(rest: Served) -> None:
    # Already expired, but accepted within the allowed clock skew of half a minute.
    expires_s = time.time() - 28
    token = rest.broker.issuer.token("ann", exp=expires_s)
    with tailing(rest, headers={"authorization": f"Bearer {token}"}) as events:
        until(lambda: time.time() > expires_s + 30)
        produce(rest.broker)
        name, told = next(events)
        assert (name, told["status"]) == ("end", 401)


def test_an_upload_of_a_deleted_user_writes_nothing_more(rest: Served) -> None:
    large = b'{"value": "%b"}\n' % (b"x" * 300_000)

    def lines() -> Iterator[bytes]:
        yield large * 2
        until(lambda: written(rest.broker) > 0)
        with rest.broker.admin() as admin:
            admin.delete_user("ann")
        yield large * 2

    with rest.by("ann") as client:
        answer = client.post("/v1/topics/t/messages", content=lines(), headers={"content-type": "application/x-ndjson"})
    assert answer.status_code == 401
    assert written(rest.broker) < 4
