from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.core.keys import EncryptionConfig, read_key_file
from ottla.net.config import NetConfig
from ottla.storage.config import LogConfig

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli

MARKER = "the-marker-that-nobody-may-find"


def fill(folder: Path, key_file: Path | None, values: int = 3) -> None:
    settings = Settings(
        broker=BrokerConfig(data_dir=folder),
        net=NetConfig(port=0),
        log=LogConfig(segment_bytes=1024),
        encryption=EncryptionConfig(key_file=key_file),
    )
    with ottla.Broker(folder, settings) as broker, ottla.Producer(broker.bootstrap_servers) as producer:
        for number in range(values):
            producer.send("orders", f"{MARKER}-{number}".encode() * 20).result()


@pytest.fixture
def key_file(cli: Cli, tmp_path: Path) -> Path:
    cli("keys", "generate", "keys")
    return tmp_path / "keys"


def rows(cli: Cli, *arguments: str) -> dict[Any, Any]:
    return {row["key"]: row for row in cli.json("keys", "status", "--data-dir", "d", *arguments)["keys"]}


def test_a_key_file_is_created_once_and_readable_by_its_owner_only(cli: Cli, key_file: Path) -> None:
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert list(read_key_file(key_file).keys) == [1]
    assert "already exists" in cli.refuses("keys", "generate", "keys", exit_code=2)


def test_a_key_can_be_printed_instead_of_written(cli: Cli) -> None:
    printed = cli("keys", "generate", "--id", "7").stdout

    assert printed.splitlines()[1].startswith("7 ")
    assert len(printed.splitlines()[1]) == 2 + 64


def test_rotation_adds_a_key(cli: Cli, key_file: Path) -> None:
    cli("keys", "rotate", "--keys", "keys")
    first = read_key_file(key_file)
    cli("keys", "rotate", "--set", f"encryption.key_file={key_file}", "--rewrite")
    second = read_key_file(key_file)

    assert (first.newest, first.rewrite_below) == (2, 0)
    assert (second.newest, second.rewrite_below) == (3, 3)
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert dict(second.keys).items() >= dict(first.keys).items()


def test_only_a_key_file_can_be_rotated(cli: Cli) -> None:
    assert "only a key file" in cli.refuses("keys", "rotate", exit_code=2)


def test_status_shows_how_much_each_key_has_encrypted(cli: Cli, key_file: Path, tmp_path: Path) -> None:
    fill(tmp_path / "d", None)
    plain = rows(cli)["none"]
    assert plain["segments"] > 0

    fill(tmp_path / "d", key_file)
    cli("keys", "rotate", "--keys", "keys")
    fill(tmp_path / "d", key_file)

    found = rows(cli, "--keys", "keys")
    assert found["none"]["segments"] == plain["segments"]
    assert (found[1]["is"], found[2]["is"]) == ("known", "known")
    assert found[1]["segments"] > 0
    assert found[2]["segments"] > 0
    assert rows(cli)[1]["is"] == "missing"

    cli("keys", "rotate", "--keys", "keys", "--rewrite")
    said = cli("keys", "status", "--data-dir", "d", "--keys", "keys").stdout
    assert "new data is encrypted with key 3" in said
    assert "remain to be re-encrypted with key 3" in said


def test_status_lists_unencrypted_data(cli: Cli, tmp_path: Path) -> None:
    fill(tmp_path / "d", None)
    leftover = tmp_path / "d" / "orders-0" / "00000000000000000000.log.12.corrupt"
    leftover.write_bytes(b"plain")

    assert str(leftover) in cli("keys", "status", "--data-dir", str(tmp_path / "d")).stdout
    assert json.loads(cli("keys", "status", "--data-dir", "d", "-o", "json").stdout)["plain_leftovers"]


def test_a_missing_folder_is_named(cli: Cli) -> None:
    assert "no data folder" in cli.refuses("keys", "status", "--data-dir", "nowhere", exit_code=1)


def test_log_dump_needs_only_the_key(cli: Cli, key_file: Path, tmp_path: Path) -> None:
    fill(tmp_path / "d", key_file)

    for command in (("dump", "d/orders-0"), ("verify", "d")):
        assert "--keys" in cli.refuses("log", *command, exit_code=1)
    shown = cli("log", "dump", "d/orders-0", "--records", "--keys", "keys").stdout
    assert shown.count(f"{MARKER}-2") == 20
    assert "segments are intact" in cli("log", "verify", "d", "--keys", "keys").stdout


def test_verify_finds_tampered_data(cli: Cli, key_file: Path, tmp_path: Path) -> None:
    from ottla.records.checksum import crc32c

    fill(tmp_path / "d", key_file, values=1)
    [segment] = [path for path in (tmp_path / "d" / "orders-0").glob("*.elog") if path.stat().st_size]
    changed = bytearray(segment.read_bytes())
    changed[-1] ^= 1
    changed[17:21] = crc32c(changed[21:]).to_bytes(4, "big")
    segment.write_bytes(changed)

    done = cli("log", "verify", "d", "--keys", "keys", exit_code=1)

    assert "could not decrypt" in done.stdout


@pytest.mark.usefixtures("key_file")
def test_a_queue_is_encrypted_from_the_command_line(cli: Cli, tmp_path: Path) -> None:
    cli("queue", "push", "q", "jobs", MARKER, "--keys", "keys")

    assert not [p for p in (tmp_path / "q").rglob("*") if p.is_file() and MARKER.encode() in p.read_bytes()]
    assert "pass its keys" in cli.refuses("queue", "pop", "q", "jobs", exit_code=1)
    assert MARKER in cli("queue", "pop", "q", "jobs", "--keys", "keys").stdout
    assert "intact" in cli("queue", "verify", "q", "--keys", "keys").stdout
