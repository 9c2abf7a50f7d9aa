"""The cost of security: ACLs, TLS and logins against none."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from timeit import repeat
from types import SimpleNamespace
from typing import Any

from bench import tls
from bench.report import Row, against
from bench.requests import produce_frame
from ottla.broker.authorization.authorizer import Authorizer
from ottla.broker.authorization.topics import produce
from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.broker.requests.context import Context
from ottla.broker.settings import Settings
from ottla.net.security_config import SecurityConfig
from ottla.storage.catalog.entries import Acl, AclOperation, AclPermission, PatternType, ResourceType
from ottla.wire.apis import PRODUCE
from ottla.wire.codec import decode_request
from ottla.wire.header import RequestHeader, read_request_header

ROUNDS = 7
REQUESTS = 5_000
LOOKUPS = 200_000


def requests() -> Iterator[Row]:
    """What its rule takes of answering a produce request, both without a network."""
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Settings(broker=BrokerConfig(data_dir=Path(folder))))
        broker.create_topic("bench")
        authorizer = Authorizer(
            SecurityConfig(acls=True, super_users=("User:bench",)), lambda: broker.catalog.view.acls
        )
        connection: Any = SimpleNamespace(principal="User:bench", peer=("127.0.0.1", 1), login=None, state={})
        frame = memoryview(bytearray(produce_frame()[4:]))
        header = read_request_header(frame)
        request: Any = decode_request(header, frame)
        context = Context(header, connection)

        def answer() -> None:
            broker.dispatcher.answer(connection, frame)

        def pass_rule() -> None:
            produce(authorizer, lambda *_: None, broker, request, context)

        rule_us, answer_us = (
            min(repeat(work, number=REQUESTS, repeat=ROUNDS)) / REQUESTS * 1e6 for work in (pass_rule, answer)
        )
        broker.close()
    yield against("the rule of a produce request, against answering it", rule_us, answer_us, at_most=0.1)


def lookups() -> Iterator[Row]:
    """A cached authorization decision among a thousand ACLs."""
    acls = frozenset(
        Acl(
            ResourceType.TOPIC, f"topic-{number}", PatternType.LITERAL, "User:ann", "*", AclOperation.WRITE,
            AclPermission.ALLOW,
        )
        for number in range(1000)
    )  # fmt: skip
    authorizer = Authorizer(SecurityConfig(acls=True), lambda: acls)
    client: Any = SimpleNamespace(principal="User:ann", peer=("10.0.0.1", 1))
    context = Context(RequestHeader(PRODUCE, 9, 0, "c", 0), client)
    known = {"topic-7": True}
    write, topic = AclOperation.WRITE, ResourceType.TOPIC

    def ask() -> None:
        for _ in range(LOOKUPS):
            authorizer.is_allowed(context, write, topic, "topic-7")

    def look_up() -> None:
        for _ in range(LOOKUPS):
            known.get("topic-7")

    ours_us, theirs_us = (min(repeat(work, number=1, repeat=ROUNDS)) / LOOKUPS * 1e6 for work in (ask, look_up))
    yield against("an ACL that was asked before, against a bare dict", ours_us, theirs_us)


def rows() -> Iterator[Row]:
    yield from lookups()
    yield from requests()
    yield from tls.rows()
