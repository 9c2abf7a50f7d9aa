"""A broker with encryption at rest: its clients, and its files."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.core.errors import ConfigError, DataDirError
from ottla.core.keys import EncryptionConfig, KeyRing, first_ring, read_key_file, write_key_file
from ottla.core.sealing import Sealer, signature
from ottla.net.config import NetConfig
from ottla.records.reader import RecordReader
from ottla.storage.catalog.acl_filter import AclFilter
from ottla.storage.catalog.entries import (
    Acl,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    ScramCredential,
    ScramMechanism,
)
from ottla.storage.catalog.sqlite import SqliteCatalog
from ottla.storage.config import LogConfig
from ottla.storage.rewrites.rewriting import Rewrite

from .making import batch, create_topic, produce, values_in
from .raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

MARKER = b"the-marker-that-nobody-may-find"
TOPIC = "orders"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    write_key_file(path, first_ring(), is_new=True)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def settings(data: Path, key_file: Path | None) -> Settings:
    return Settings(
        broker=BrokerConfig(data_dir=data),
        net=NetConfig(port=0),
        log=LogConfig(segment_bytes=2048),
        encryption=EncryptionConfig(key_file=key_file),
    )


def files_with(marker: bytes, folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and marker in path.read_bytes()]


def fill(data: Path, key_file: Path | None) -> None:
    with ottla.Broker(data, settings(data, key_file)) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, TOPIC)
        for number in range(10):
            produce(client, TOPIC, MARKER * 20 + b"%d" % number)


def everything(client: RawClient) -> list[bytes | None]:
    found: list[bytes | None] = []
    while got := values_in(client, TOPIC, len(found)):
        found += got
    return found


EXPECTED = [MARKER * 20 + b"%d" % number for number in range(10)]


def test_plaintext_is_in_no_file_while_it_runs_and_afterwards(data: Path, key_file: Path) -> None:
    with ottla.Broker(data, settings(data, key_file)) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, TOPIC)
        for number in range(10):
            produce(client, TOPIC, MARKER * 20 + b"%d" % number)
        assert everything(client) == EXPECTED
        assert files_with(MARKER, data) == []
    assert files_with(MARKER, data) == []
    with ottla.Broker(data, settings(data, key_file)) as broker, RawClient(broker.bootstrap_servers) as client:
        assert everything(client) == EXPECTED


def test_it_does_not_start_without_the_key(data: Path, key_file: Path, tmp_path: Path) -> None:
    fill(data, key_file)
    other = tmp_path / "other"
    write_key_file(other, first_ring(), is_new=True)

    for wrong in (None, other):
        with pytest.raises(DataDirError):
            Broker(settings(data, wrong))
    with pytest.raises(ConfigError):
        Broker(settings(data, tmp_path / "not there"))


def test_a_key_file_beside_the_data_is_refused(data: Path) -> None:
    data.mkdir()
    inside = data / "keys"
    write_key_file(inside, first_ring(), is_new=True)

    with pytest.raises(ConfigError, match="must not be in the data folder"):
        Broker(settings(data, inside))


@pytest.mark.parametrize("was_encrypted", [True, False])
def test_a_new_key_is_loaded_and_all_data_is_re_encrypted(data: Path, key_file: Path, *, was_encrypted: bool) -> None:
    fill(data, key_file if was_encrypted else None)

    async def rotate() -> None:
        broker = Broker(settings(data, key_file))
        try:
            write_key_file(key_file, read_key_file(key_file).with_new_key(rewrites=True), is_new=False)
            await broker.key_rotation.check()
            assert broker.data_dir.keys is not None
            assert broker.data_dir.keys.noted == {2}
        finally:
            broker.close()

    asyncio.run(rotate())
    assert files_with(MARKER, data) == []
    write_key_file(key_file, KeyRing({2: read_key_file(key_file).keys[2]}), is_new=False)
    with ottla.Broker(data, settings(data, key_file)) as broker, RawClient(broker.bootstrap_servers) as client:
        assert everything(client) == EXPECTED


def test_unusable_keys_change_nothing(data: Path, key_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(data, key_file)

    def spoil_keys() -> None:
        key_file.write_text("nonsense")

    async def rotate() -> None:
        broker = Broker(settings(data, key_file))
        try:
            spoil_keys()
            await broker.key_rotation.check()
            assert broker.data_dir.sealer is not None
            assert broker.data_dir.sealer.ring.newest == 1
        finally:
            broker.close()

    asyncio.run(rotate())
    assert "the old ones stay in use" in caplog.text


def test_the_key_of_a_segment_that_cannot_be_re_encrypted_stays_in_use(data: Path, key_file: Path) -> None:
    fill(data, key_file)
    segment = min((data / f"{TOPIC}-0").glob("*.elog"))
    damaged = bytearray(segment.read_bytes())
    damaged[200] ^= 1
    segment.write_bytes(damaged)

    async def rotate() -> None:
        broker = Broker(settings(data, key_file))
        try:
            write_key_file(key_file, read_key_file(key_file).with_new_key(rewrites=True), is_new=False)
            await broker.key_rotation.check()
            assert broker.data_dir.keys is not None
            assert broker.data_dir.keys.noted == {1, 2}
        finally:
            broker.close()

    asyncio.run(rotate())
    assert segment.read_bytes() == damaged


def test_a_topic_deleted_during_re_encryption_stays_deleted(
    data: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(data, key_file)

    async def rotate() -> None:
        broker = Broker(settings(data, key_file))
        run = Rewrite.run

        def run_while_it_is_deleted(rewrite: Rewrite) -> None:
            run(rewrite)
            if TOPIC in broker.topics.by_name:
                broker.topics.delete(broker.topics.by_name[TOPIC])
                state = broker.create_topic(TOPIC)
                state.partitions[0].log.append(bytearray(batch(b"of the new one")))

        monkeypatch.setattr(Rewrite, "run", run_while_it_is_deleted)
        try:
            write_key_file(key_file, read_key_file(key_file).with_new_key(rewrites=True), is_new=False)
            await broker.key_rotation.check()
            log = broker.topics.partition(TOPIC, 0).log
            assert [record.value for record in RecordReader(log.read(0, 1 << 20))] == [b"of the new one"]
        finally:
            broker.close()

    asyncio.run(rotate())


# The catalog: an attacker with write access to the folder of a stopped broker, without a key


def tampered(data: Path, *statements: str) -> None:
    with closing(sqlite3.connect(data / "catalog.sqlite", isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


OLD_FORMAT = (
    "ALTER TABLE scram_credential DROP COLUMN expires_ms",
    "DROP TABLE delegation_token",
    "DROP TABLE seal",
    "PRAGMA user_version = 1",
)
GRANT = "INSERT INTO acl VALUES (2, 'orders', 3, 'User:eve', '*', 3, 3)"
SWAP = (
    "UPDATE topic SET name = 'spare' WHERE name = 'orders'",
    "UPDATE topic SET name = 'orders' WHERE name = 'public'",
    "UPDATE topic SET name = 'public' WHERE name = 'spare'",
)


@pytest.mark.parametrize(
    "statements",
    [
        (GRANT,),
        SWAP,
        ("DELETE FROM acl",),
        ("INSERT INTO topic_config SELECT id, 'retention.ms', '1' FROM topic WHERE name = 'orders'",),
        ("UPDATE scram_credential SET user = 'eve'",),
        (GRANT, "DELETE FROM seal"),
        (GRANT, "UPDATE seal SET code = zeroblob(64)"),
        (GRANT, *OLD_FORMAT),
    ],
    ids=["acl", "names", "denial", "config", "user", "no seal", "other seal", "older format"],
)
def test_a_catalog_modified_without_the_keys_is_refused(
    data: Path, key_file: Path, statements: tuple[str, ...]
) -> None:
    fill_with_rights(data, key_file)
    before = (data / "catalog.sqlite").read_bytes()
    tampered(data, *statements)
    with pytest.raises(DataDirError, match="it was modified"):
        Broker(settings(data, key_file))
    (data / "catalog.sqlite").write_bytes(before)
    with ottla.Broker(data, settings(data, key_file)) as broker:
        assert set(broker.broker.topics.by_name) == {TOPIC, "public"}


def fill_with_rights(data: Path, key_file: Path) -> None:
    fill(data, key_file)
    broker = Broker(settings(data, key_file))
    denial = Acl(ResourceType.TOPIC, "*", PatternType.LITERAL, "User:eve", "*", AclOperation.READ, AclPermission.DENY)
    broker.catalog.create_topic("public", 1)
    broker.catalog.add_acls([denial])
    broker.catalog.put_credential(ScramCredential("ann", ScramMechanism.SCRAM_SHA_512, b"s", 4096, b"a", b"b"))
    broker.close()


def test_a_removed_catalog_is_refused(data: Path, key_file: Path) -> None:
    fill(data, key_file)
    (data / "catalog.sqlite").unlink()
    with pytest.raises(DataDirError, match=r"catalog\.sqlite is missing"):
        Broker(settings(data, key_file))


def test_after_rotation_the_catalog_opens_without_the_old_key(data: Path, key_file: Path) -> None:
    fill_with_rights(data, key_file)
    first = read_key_file(key_file)
    ring = KeyRing({**first.keys, 2: bytes(range(32))}, rewrite_below=2)
    for _ in range(2):
        with closing(SqliteCatalog.open(data, Sealer(ring), must_be_sealed=True)) as catalog:
            assert len(catalog.view.acls) == 1
    with closing(SqliteCatalog.open(data, Sealer(KeyRing({2: ring.keys[2]})), must_be_sealed=True)) as catalog:
        catalog.delete_acls(AclFilter())
    with closing(SqliteCatalog.open(data, Sealer(KeyRing({2: ring.keys[2]})), must_be_sealed=True)) as catalog:
        assert not catalog.view.acls


def test_an_unsealed_catalog_of_an_older_release_is_sealed_at_the_next_start(data: Path, key_file: Path) -> None:
    fill(data, key_file)
    noted = json.loads((data / "encryption.json").read_text())
    assert noted.pop("catalog")
    del noted["signature"]
    ring = read_key_file(key_file)
    noted["signature"] = signature(ring.keys[1], json.dumps(noted, sort_keys=True).encode())
    (data / "encryption.json").write_text(json.dumps(noted))
    tampered(data, *OLD_FORMAT)
    Broker(settings(data, key_file)).close()
    tampered(data, GRANT)
    with pytest.raises(DataDirError, match="modified without the keys"):
        Broker(settings(data, key_file))
