"""Topics with separate encryption keys: created, rotated, readable, and deleted with the topic."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

import ottla
from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.cli.main import program
from ottla.client.admin.configs import ConfigResource
from ottla.core.errors import OttlaError
from ottla.core.keys import EncryptionConfig, first_ring, read_key_file, write_key_file
from ottla.core.sealing import Sealer
from ottla.net.config import NetConfig
from ottla.storage.folder.own_keys import FIRST_OWN_KEY_ID
from ottla.storage.inspect import batches, cipher_for, key_id_of_segment, segment_files

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 20.0
OWN = {"encryption.key.version": "1"}


class Encrypted:
    def __init__(self, folder: Path) -> None:
        self.key_file = folder / "keys"
        self.data_dir = folder / "data"
        write_key_file(self.key_file, first_ring(), is_new=True)
        self.settings = Settings(
            broker=BrokerConfig(data_dir=self.data_dir),
            net=NetConfig(port=0),
            encryption=EncryptionConfig(key_file=self.key_file),
        )

    def running(self) -> ottla.Broker:
        return ottla.Broker(self.data_dir, self.settings)

    def rotate(self, *, rewrites: bool = False) -> None:
        ring = read_key_file(self.key_file).with_new_key(rewrites=rewrites)
        write_key_file(self.key_file, ring, is_new=False)

    def key_ids(self, folder: str = "orders-0") -> list[int]:
        return [key_id_of_segment(file) for file in segment_files(self.data_dir / folder) if file.stat().st_size]


@pytest.fixture
def encrypted(tmp_path: Path) -> Encrypted:
    return Encrypted(tmp_path)


def produce(broker: ottla.Broker, *values: bytes) -> None:
    with ottla.Producer(broker.bootstrap_servers) as producer:
        for value in values:
            producer.send("orders", value).result(PATIENCE_S)


def consumed(broker: ottla.Broker, count: int) -> list[bytes]:
    with ottla.Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([ottla.TopicPartition("orders", 0)])
        found: list[bytes] = []
        while len(found) < count:
            found += [one.value or b"" for one in consumer.poll(timeout_ms=1000)]
        return found


def admin(broker: ottla.Broker) -> ottla.Admin:
    return ottla.Admin(broker.bootstrap_servers)


def use_version(broker: ottla.Broker, version: int) -> None:
    with admin(broker) as client:
        client.alter_configs(ConfigResource.topic("orders"), {"encryption.key.version": str(version)})


def open_log(broker: ottla.Broker) -> Any:
    async def opened() -> Any:
        return broker.broker.topics.partition("orders", 0).log

    assert broker._loop is not None
    return asyncio.run_coroutine_threadsafe(opened(), broker._loop).result(PATIENCE_S)


def check_keys(broker: ottla.Broker) -> None:
    """Load changed keys and re-encrypt now instead of at the next interval."""
    rotation, loop = broker.broker.key_rotation, broker._loop
    assert rotation is not None
    assert loop is not None
    asyncio.run_coroutine_threadsafe(rotation.check(), loop).result(PATIENCE_S)


def test_a_topic_with_its_own_key_is_not_readable_with_the_keys_of_the_folder_alone(encrypted: Encrypted) -> None:
    with encrypted.running() as broker:
        with admin(broker) as client:
            client.create_topic("orders", configs=OWN)
        produce(broker, b"a secret")
        assert consumed(broker, 1) == [b"a secret"]
    assert encrypted.key_ids() == [FIRST_OWN_KEY_ID + 1]
    [file] = segment_files(encrypted.data_dir / "orders-0")
    sealer = Sealer(read_key_file(encrypted.key_file))
    assert b"a secret" in bytes(next(batches(file, decrypt=cipher_for(file, sealer).open)).data)
    (encrypted.data_dir / "orders-0" / "own-keys.json").unlink()
    with pytest.raises(OttlaError, match="missing from the given keys"):
        list(batches(file, decrypt=cipher_for(file, sealer).open))
    with encrypted.running() as broker, pytest.raises(OttlaError, match="lacks key 1"):
        open_log(broker)
    assert not (encrypted.data_dir / "orders-0" / "own-keys.json").exists()


def test_a_topic_gets_and_changes_its_key_while_it_is_used_and_old_data_stays_readable(encrypted: Encrypted) -> None:
    with encrypted.running() as broker:
        with admin(broker) as client:
            client.create_topic("orders")
        for version in (0, 1, 2, 0, 2):
            use_version(broker, version)
            produce(broker, str(version).encode())
        assert consumed(broker, 5) == [b"0", b"1", b"2", b"0", b"2"]
    own = [FIRST_OWN_KEY_ID + 1, FIRST_OWN_KEY_ID + 2]
    assert encrypted.key_ids() == [1, own[0], 1, own[1]]  # a segment has keys of one kind
    with encrypted.running() as broker:
        assert consumed(broker, 5) == [b"0", b"1", b"2", b"0", b"2"]


def test_rotating_the_keys_of_the_folder_encrypts_own_keys_again_and_not_their_data(encrypted: Encrypted) -> None:
    with encrypted.running() as broker:
        with admin(broker) as client:
            client.create_topic("orders", configs=OWN)
        produce(broker, b"before")
        encrypted.rotate(rewrites=True)
        check_keys(broker)
        produce(broker, b"after")
    ring = read_key_file(encrypted.key_file)
    write_key_file(encrypted.key_file, replace(ring, keys={2: ring.keys[2]}), is_new=False)  # key 1 is gone for good
    with encrypted.running() as broker:
        assert consumed(broker, 2) == [b"before", b"after"]
    assert encrypted.key_ids() == [FIRST_OWN_KEY_ID + 1]


def test_own_keys_of_partitions_that_were_closed_during_a_rotation_are_encrypted_again(encrypted: Encrypted) -> None:
    with encrypted.running() as broker:
        with admin(broker) as client:
            client.create_topic("orders", configs=OWN)
        produce(broker, b"before")
    encrypted.rotate(rewrites=True)
    with encrypted.running() as broker:
        check_keys(broker)
    ring = read_key_file(encrypted.key_file)
    write_key_file(encrypted.key_file, replace(ring, keys={2: ring.keys[2]}), is_new=False)
    with encrypted.running() as broker:
        assert consumed(broker, 1) == [b"before"]


def test_deleting_the_topic_forgets_its_key(encrypted: Encrypted, tmp_path: Path) -> None:
    with encrypted.running() as broker:
        with admin(broker) as client:
            client.create_topic("orders", configs=OWN)
        produce(broker, b"a secret")
        [file] = segment_files(encrypted.data_dir / "orders-0")
        stolen = tmp_path / "stolen" / "orders-0"
        shutil.copytree(file.parent, stolen, ignore=shutil.ignore_patterns("own-keys.json"))
        with admin(broker) as client:
            client.delete_topics(["orders"])
    assert not list(encrypted.data_dir.rglob("own-keys.json"))
    sealer = Sealer(read_key_file(encrypted.key_file))
    with pytest.raises(OttlaError, match="missing from the given keys"):
        list(batches(stolen / file.name, decrypt=cipher_for(stolen / file.name, sealer).open))


def test_keys_of_another_partition_are_not_accepted(encrypted: Encrypted) -> None:
    with encrypted.running() as broker:
        with admin(broker) as client:
            client.create_topic("orders", partitions=2, configs=OWN)
        with ottla.Producer(broker.bootstrap_servers) as producer:
            for partition in (0, 1):
                producer.send("orders", b"x", partition=partition).result(PATIENCE_S)
    first, second = (encrypted.data_dir / f"orders-{each}" / "own-keys.json" for each in (0, 1))
    assert json.loads(first.read_text())["keys"] != json.loads(second.read_text())["keys"]
    shutil.copy(second, first)
    with encrypted.running() as broker, pytest.raises(OttlaError, match="modified or moved"):
        open_log(broker)


def test_it_is_refused_where_nothing_is_encrypted(tmp_path: Path) -> None:
    settings = Settings(broker=BrokerConfig(data_dir=tmp_path), net=NetConfig(port=0))
    with (
        ottla.Broker(tmp_path, settings) as broker,
        admin(broker) as client,
        pytest.raises(OttlaError, match="needs encryption at rest"),
    ):
        client.create_topic("orders", configs=OWN)


def test_the_command_line_shows_how_much_own_keys_have_encrypted(encrypted: Encrypted) -> None:
    with encrypted.running() as broker:
        with admin(broker) as client:
            client.create_topic("orders", configs=OWN)
        produce(broker, b"x")
    arguments = ["keys", "status", "--keys", str(encrypted.key_file), "--data-dir", str(encrypted.data_dir)]
    done: Any = CliRunner().invoke(program, arguments, prog_name="ottla")
    assert done.exit_code == 0, done.output
    assert "own   of topics         1" in done.output
