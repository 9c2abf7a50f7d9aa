"""Fsync before each reply, and TLS."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
from tests.client.certificates import make_certificates

from ottla.broker.security.shard_tls import shard_tls
from ottla.broker.settings import Settings
from ottla.core.errors import ConfigError, StorageError
from ottla.dmqp import Client, NotReached, Refused
from ottla.dmqp.config import DmqpConfig
from ottla.dmqp.frame import Method, Status, encode
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig
from ottla.storage.config import LogConfig

from .serving import DmqpBroker, RawShard

if TYPE_CHECKING:
    from pathlib import Path

    from tests.client.certificates import Certificates

ON_THE_DISK = Settings(net=NetConfig(port=0), log=LogConfig(flush="ack"))


def test_acknowledged_messages_are_on_disk(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path, settings=ON_THE_DISK) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as shard:
            shard.send(encode(0, Method.PUSH, 0, b"x") * 50)
            assert [shard.receive().sequence_id for _ in range(50)] == list(range(50))
            assert served.broker.topics.partition("jobs", 0).log.recovery_point == 50
            assert [shard.pop().sequence_id for _ in range(50)] == list(range(50))
            [cursors] = served.broker.topics.by_name["__consumer_offsets"].partitions
            assert cursors.log.recovery_point == cursors.log.next_offset


def test_a_message_is_not_delivered_if_its_pop_cannot_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DmqpBroker(tmp_path) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as shard:
            shard.push(b"first")
            shard.push(b"second")
            assert shard.pop().payload == b"first"
            [cursors] = served.broker.topics.by_name["__consumer_offsets"].partitions
            with monkeypatch.context() as broken:
                broken.setattr(cursors, "_log", _FullLog())
                assert shard.pop().status == Status.EIO
            assert shard.pop().payload == b"second"


def test_a_refused_push_leaves_its_sequence_id_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DmqpBroker(tmp_path) as served:
        [port] = served.exposed("jobs")
        partition = served.broker.topics.partition("jobs", 0)
        with RawShard(port) as shard:
            assert shard.push(b"first").sequence_id == 0
            with monkeypatch.context() as broken:
                broken.setattr(partition, "_log", _FullLog())
                assert shard.push(b"lost").status == Status.EIO
            assert shard.push(b"second", sequence_id=1).sequence_id == 1
            assert [shard.pop().payload, shard.pop().payload] == [b"first", b"second"]


def test_a_push_whose_fsync_failed_keeps_its_sequence_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the log, though it was answered with EIO."""

    async def fail(*_: object) -> None:
        raise StorageError("Input/output error")

    with DmqpBroker(tmp_path, settings=ON_THE_DISK) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as shard:
            assert shard.push(b"first").sequence_id == 0
            with monkeypatch.context() as broken:
                broken.setattr(served.broker.topics.partition("jobs", 0), "_sync", fail)
                assert shard.push(b"unsure").status == Status.EIO
            assert shard.push(b"second").sequence_id == 2
            popped = [shard.pop() for _ in range(3)]
            assert [(one.sequence_id, one.payload) for one in popped] == [(0, b"first"), (1, b"unsure"), (2, b"second")]


class _FullLog:
    config = LogConfig()
    next_offset = 1

    def append(self, *_: object, **__: object) -> None:
        raise StorageError("no space left on device")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def trusting(certificates: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates.authority))


def encrypted(certificates: Certificates, client_ca_file: str = "") -> DmqpConfig:
    key = certificates.key_of(certificates.broker)
    return DmqpConfig(cert_file=str(certificates.broker), key_file=str(key), client_ca_file=client_ca_file)


def test_shards_over_tls(tmp_path: Path, certificates: Certificates) -> None:
    with DmqpBroker(tmp_path, encrypted(certificates)) as served:
        with Client(served.bootstrap, tls=trusting(certificates)) as client:
            client.create_topic("jobs", shards=2)
            for number in range(4):
                client.push("jobs", b"%d" % number * 100_000)
            assert len(served.server._service.connections) == 2
            popped = [client.pop("jobs") for _ in range(4)]
            assert [message.data[:1] for message in popped if message] == [b"0", b"1", b"2", b"3"]
            assert len(served.server._service.connections) == 2
        with Client(served.bootstrap) as client, pytest.raises(NotReached, match="TLS"):
            client.pop("jobs")


def test_only_clients_with_a_certificate(tmp_path: Path, certificates: Certificates) -> None:
    with DmqpBroker(tmp_path, encrypted(certificates, str(certificates.authority))) as served:
        with Client(served.bootstrap, tls=trusting(certificates)) as stranger:
            stranger.create_topic("jobs")
            with pytest.raises(NotReached):
                stranger.push("jobs", b"x")
        known = trusting(certificates)
        known.load_cert_chain(certificates.client, certificates.key_of(certificates.client))
        with Client(served.bootstrap, tls=known) as client:
            assert client.push("jobs", b"x") == 0


def test_a_missing_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cert_file"):
        shard_tls(SecurityConfig(), "127.0.0.1", str(tmp_path / "none.pem"))


def test_unsuitable_topics_are_not_exposed(served: DmqpBroker, topic: str) -> None:
    with Client(served.bootstrap) as client, pytest.raises(Refused, match="no topic"):
        client._rest.expose(topic)
    compacted = {"name": topic, "configs": {"cleanup.policy": "compact"}}
    assert served.client.post("/v1/topics", json=compacted).status_code == 201
    assert "compacted" in served.client.post(f"/v1/dmqp/{topic}", json={}).json()["detail"]
    too_many = {"ports": [0, 0]}
    assert served.client.post(f"/v1/dmqp/{topic}", json=too_many).status_code == 400
