"""DMQP with ACLs: who may expose a topic, and whose rights apply to its use."""

from __future__ import annotations

import asyncio
import ssl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.dmqp.serving import RawShard

from ottla.client.admin.acls import AclFilter
from ottla.core.security import AclOperation, ResourceType
from ottla.dmqp.config import DmqpConfig
from ottla.dmqp.frame import Status
from ottla.dmqp.server import DmqpServer

from .securing import secured
from .test_rest import PATIENCE_S, Served, allow, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .certificates import Authority

RIGHTS = [
    ("ann", AclOperation.ALTER, ResourceType.TOPIC, "jobs"),
    ("ann", AclOperation.READ, ResourceType.TOPIC, "jobs"),
    ("ann", AclOperation.WRITE, ResourceType.TOPIC, "jobs"),
    ("ann", AclOperation.READ, ResourceType.GROUP, "__dmqp.jobs"),
    ("ann", AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, "jobs"),
]


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[Served]:
    with exposing(tmp_path, lambda _: DmqpConfig()) as http:
        yield http


@contextmanager
def exposing(folder: Path, config: Callable[[Authority], DmqpConfig]) -> Iterator[Served]:
    with secured(folder, acls=True, super_users=("User:admin",)) as broker, served(broker, tls=True) as http:
        loop = broker.embedded._loop
        assert loop is not None

        def run(work: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE_S)

        async def start() -> DmqpServer:
            server = DmqpServer(broker.embedded.broker, config(broker.authority))
            await server.start()
            broker.embedded.broker.shard_server = server
            return server

        server = run(start())
        try:
            yield http
        finally:
            run(server.stop())


def test_exposing_a_topic_requires_all_rights_of_its_users(rest: Served) -> None:
    with rest.by("admin") as admin, rest.by("ann") as ann, rest.by("bob") as bob:
        assert admin.post("/v1/topics", json={"name": "jobs"}).status_code == 201
        for needed in RIGHTS:
            assert ann.post("/v1/dmqp/jobs", json={}).status_code == 403, needed
            allow(rest, needed)
        exposed = ann.post("/v1/dmqp/jobs", json={})
        assert exposed.status_code == 200, exposed.text
        [place] = exposed.json()["shards"]
        with RawShard(place["port"]) as shard:
            assert shard.push(b"x").status == Status.OK
            assert shard.pop().payload == b"x"
        for refused in (
            bob.get("/v1/dmqp/jobs"),
            bob.delete("/v1/dmqp/jobs"),
            bob.post("/v1/dmqp/jobs/consumers", json={"consumer": "bob"}),
            bob.delete("/v1/dmqp/jobs/consumers/ann"),
        ):
            assert refused.status_code == 403
        assert bob.get("/v1/dmqp").json() == {"topics": []}
        assert ann.get("/v1/dmqp/jobs").status_code == 200
        assert ann.post("/v1/dmqp/jobs/consumers", json={"consumer": "ann"}).json()["shards"] == [0]
        assert ann.delete("/v1/dmqp/jobs").status_code == 200


def test_revoked_rights_end_exposed_topics(rest: Served) -> None:
    with rest.by("admin") as admin, rest.by("ann") as ann, rest.broker.admin() as acls:
        assert admin.post("/v1/topics", json={"name": "jobs"}).status_code == 201
        allow(rest, *RIGHTS)
        [place] = ann.post("/v1/dmqp/jobs", json={}).json()["shards"]
        with RawShard(place["port"]) as shard:
            assert shard.push(b"x").status == Status.OK
            assert acls.delete_acls(AclFilter(principal="User:ann"))
            assert shard.push(b"y").status == Status.EIO
            assert shard.pop().status == Status.EIO


def authorizing(authority: Authority) -> DmqpConfig:
    files = authority.server(file="shard")
    return DmqpConfig(
        cert_file=str(files.cert), key_file=str(files.key), client_ca_file=str(authority.cert), authorize_clients=True
    )


def test_a_client_has_the_rights_of_its_certificate(tmp_path: Path) -> None:
    with exposing(tmp_path, authorizing) as rest, rest.by("admin") as admin:
        assert admin.post("/v1/topics", json={"name": "jobs"}).status_code == 201
        [place] = admin.post("/v1/dmqp/jobs", json={}).json()["shards"]
        allow(rest, ("bob", AclOperation.WRITE, ResourceType.TOPIC, "jobs"))
        expected = {
            "admin": (Status.OK, Status.OK),
            "bob": (Status.OK, Status.EACCES),
            "ann": (Status.EACCES, Status.EACCES),
        }
        for user, statuses in expected.items():
            files = rest.broker.authority.client(user)
            context = ssl.create_default_context(cafile=str(rest.broker.authority.cert))
            context.load_cert_chain(files.cert, files.key)
            with RawShard(place["port"]) as shard:
                shard.socket = context.wrap_socket(shard.socket, server_hostname="localhost")
                assert (shard.push(b"x").status, shard.pop().status) == statuses, user


def test_clients_without_certificates_cannot_be_authorized() -> None:
    with pytest.raises(ValueError, match="authorize_clients needs a client_ca_file"):
        DmqpConfig(authorize_clients=True)


def test_new_certificates_are_used_without_a_restart(tmp_path: Path) -> None:
    def with_tls(authority: Authority) -> DmqpConfig:
        files = authority.server(file="shard")
        return DmqpConfig(cert_file=str(files.cert), key_file=str(files.key))

    with exposing(tmp_path, with_tls) as rest, rest.by("admin") as admin:
        assert admin.post("/v1/topics", json={"name": "jobs"}).status_code == 201
        [place] = admin.post("/v1/dmqp/jobs", json={}).json()["shards"]
        trust = ssl.create_default_context(cafile=str(rest.broker.authority.cert))

        def shown() -> Any:
            with RawShard(place["port"]) as shard:
                shard.socket = trust.wrap_socket(shard.socket, server_hostname="localhost")
                return (shard.socket.getpeercert() or {})["serialNumber"]

        before = shown()
        rest.broker.authority.server(file="shard")
        deadline_s = time.monotonic() + PATIENCE_S
        while shown() == before:
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
