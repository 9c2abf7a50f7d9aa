from __future__ import annotations

import socket
import ssl
import stat
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.cli.server.loading import broker_settings
from ottla.core.errors import OttlaError
from ottla.core.keys import read_key_file
from ottla.core.sealing import Sealer
from ottla.storage.catalog.entries import ScramMechanism
from ottla.storage.catalog.sqlite import SqliteCatalog

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli


@pytest.fixture
def printed(cli: Cli) -> str:
    return cli("secure", "init", "secure", "--data-dir", "d", "--host", "kafka.example").stdout


def password_in(printed: str) -> str:
    [line] = [line for line in printed.splitlines() if line.startswith("sasl.password=")]
    return line.partition("=")[2]


@pytest.mark.usefixtures("printed")
def test_secret_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "secure").iterdir()}

    assert {name for name, mode in modes.items() if mode == 0o600} == {"ca.key", "server.key", "client.key", "keys"}
    assert stat.S_IMODE((tmp_path / "secure").stat().st_mode) == 0o700


def test_the_client_settings_work(printed: str, tmp_path: Path) -> None:
    password = password_in(printed)

    assert "bootstrap.servers=kafka.example:9093" in printed
    assert f"ssl.ca.location={tmp_path / 'secure' / 'ca.pem'}" in printed
    assert "ssl.truststore.type=PEM" in printed
    assert printed.count(password) == 3
    python = printed[printed.index("import ottla") : printed.index("producer =")]
    names: dict[str, object] = {}
    exec(python, names)  # noqa: S102 - it was printed to be run
    assert getattr(names["security"], "username") == "admin"  # noqa: B009


def test_the_password_is_stored_nowhere_and_its_verifier_is_encrypted(printed: str, tmp_path: Path) -> None:
    password = password_in(printed).encode()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if password in path.read_bytes()] == []

    catalog = SqliteCatalog.open(tmp_path / "d", Sealer(read_key_file(tmp_path / "secure" / "keys")))
    credential = catalog.view.credentials["admin", ScramMechanism.SCRAM_SHA_512]
    catalog.close()

    assert len(credential.stored_key) == 64
    assert [path for path in files if credential.stored_key in path.read_bytes()] == []


@pytest.mark.usefixtures("printed")
def test_the_certificates_belong_together(tmp_path: Path) -> None:
    folder = tmp_path / "secure"
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.pem"))
    server.load_cert_chain(folder / "server.pem", folder / "server.key")
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    client.load_cert_chain(folder / "client.pem", folder / "client.key")

    for host in ("kafka.example", "localhost", "127.0.0.1"):
        subject = shake_hands(client, server, host)
        assert subject == "admin"
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client, server, "other.example")


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> str:
    """The subject that the server reads from the client's certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=host)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    while len(done) < 2:
        for side in (asking, answering):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue
    certificate = answering.getpeercert()
    assert certificate is not None
    [[[_, name]]] = certificate["subject"]  # type: ignore[misc, str-unpack]
    return str(name)


@pytest.mark.usefixtures("printed")
def test_the_configuration_refers_to_the_created_files(tmp_path: Path) -> None:
    config = tomllib.loads((tmp_path / "secure" / "ottla.toml").read_text())

    assert config["broker"]["data_dir"] == str(tmp_path / "d")
    assert config["net"]["listeners"] == [{"protocol": "SASL_SSL", "host": "127.0.0.1", "port": 9093}]
    assert config["encryption"]["key_file"] == str(tmp_path / "secure" / "keys")
    assert config["security"]["super_users"] == ["User:admin"]


def test_existing_files_are_not_touched(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "secure").mkdir()
    (tmp_path / "secure" / "notes").write_text("mine")

    assert "not empty" in cli.refuses("secure", "init", "secure", exit_code=2)
    assert [path.name for path in (tmp_path / "secure").iterdir()] == ["notes"]


def test_the_key_must_not_be_in_the_data_folder(cli: Cli) -> None:
    refused = cli.refuses("secure", "init", "d/secure", "--data-dir", "d", exit_code=2)

    assert "must not lie with the data" in refused


def test_a_failed_run_leaves_no_files(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "stranger").write_text("not a data folder")

    assert "not a data folder" in cli.refuses("secure", "init", "secure", "--data-dir", "d", exit_code=1)
    assert not (tmp_path / "secure").exists()


def test_an_invalid_user_name_is_refused(cli: Cli) -> None:
    assert "--user" in cli.refuses("secure", "init", "secure", "--user", 'ann";', exit_code=2)


def test_a_secured_broker_accepts_the_configured_client(cli: Cli, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    printed = cli("secure", "init", "secure", "--data-dir", "d", "--port", str(port)).stdout
    program = printed[printed.index("import ottla") : printed.index("\n\nKeep a copy")]
    names: dict[str, Any] = {}
    settings, *_ = broker_settings(tmp_path / "secure" / "ottla.toml", (), {})

    with ottla.Broker(tmp_path / "d", settings):
        exec(program, names)  # noqa: S102 - it was printed to be run
        with names["producer"] as producer:
            producer.send("orders", b"the-marker-that-nobody-may-find").result()
        with ottla.Consumer(
            f"localhost:{port}", topics=["orders"], auto_offset_reset="earliest", security=names["security"]
        ) as consumer:
            [record] = consumer.poll(1, timeout_ms=10_000)
            assert record.value == b"the-marker-that-nobody-may-find"
        own_config = ("--config", str(tmp_path / "secure" / "ottla.toml"))
        listed = cli("topic", "list", *own_config, OTTLA_BROKER=None, OTTLA_PASSWORD=password_in(printed))
        assert "orders" in listed.stdout
        with pytest.raises(OttlaError, match="rejected the login"):
            ottla.Admin(f"localhost:{port}", security=replace(names["security"], password="guessed"))

    files = [path for path in (tmp_path / "d").rglob("*") if path.is_file()]
    assert [path for path in files if b"the-marker" in path.read_bytes()] == []
