"""Keys that a key management service wraps: the key file alone opens nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from moto.server import ThreadedMotoServer

import ottla
from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.cli.main import program
from ottla.core.errors import ConfigError
from ottla.core.keys import EncryptionConfig, read_key_file
from ottla.kms.wrapping import Unwrapper, wrapper_for
from ottla.net.config import NetConfig

from .transit import KEY, TOKEN, Transit, transit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA_KEY = bytes(range(32))


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[Transit]:
    monkeypatch.setenv("VAULT_TOKEN", TOKEN)
    with transit() as server:
        yield server


def config(vault: Transit, **changes: object) -> EncryptionConfig:
    given = {"key_wrapping": "vault", "wrapping_key": KEY, "vault_address": vault.url, **changes}
    return EncryptionConfig(**given)  # type: ignore[arg-type]


def ottla_keys(*arguments: str, exit_code: int = 0) -> str:
    done = CliRunner().invoke(program, ["keys", *arguments], prog_name="ottla")
    assert done.exit_code == exit_code, done.output
    return done.output


def settings_of(vault: Transit, key_file: Path) -> list[str]:
    given = {"key_file": key_file, "key_wrapping": "vault", "wrapping_key": KEY, "vault_address": vault.url}
    return [word for name, value in given.items() for word in ("--set", f"encryption.{name}={value}")]


def test_a_broker_starts_with_keys_that_vault_wraps_and_not_without_vault(vault: Transit, tmp_path: Path) -> None:
    key_file = tmp_path / "keys"
    ottla_keys("generate", str(key_file), *settings_of(vault, key_file))
    assert "1 vault:v1:" in key_file.read_text()
    settings = Settings(
        broker=BrokerConfig(data_dir=tmp_path / "data"),
        net=NetConfig(port=0),
        encryption=config(vault, key_file=key_file),
    )
    with ottla.Broker(tmp_path / "data", settings) as broker, ottla.Producer(broker.bootstrap_servers) as producer:
        producer.send("orders", b"a secret of the shop").result()
    assert not any(b"a secret" in file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file())
    with (
        ottla.Broker(tmp_path / "data", settings) as broker,
        ottla.Consumer(broker.bootstrap_servers, topics=["orders"], auto_offset_reset="earliest") as consumer,
    ):
        assert next(iter(consumer)).value == b"a secret of the shop"
    vault.versions = [bytes(32)]  # another Vault, or its key is gone
    with pytest.raises(ConfigError, match="refused to decrypt: 400 cipher"):
        ottla.Broker(tmp_path / "data", settings).__enter__()


def test_rotation_wraps_every_key_with_the_newest_version(vault: Transit, tmp_path: Path) -> None:
    key_file = tmp_path / "keys"
    ottla_keys("generate", str(key_file), *settings_of(vault, key_file))
    before = read_key_file(key_file, Unwrapper(config(vault)))
    vault.rotate()
    ottla_keys("rotate", *settings_of(vault, key_file))
    after = read_key_file(key_file, Unwrapper(config(vault)))
    assert key_file.read_text().count("vault:v2:") == 2
    assert (after.newest, after.keys[1]) == (2, before.keys[1])


def test_a_wrapped_key_is_refused_where_no_service_can_be_asked(vault: Transit, tmp_path: Path) -> None:
    key_file = tmp_path / "keys"
    ottla_keys("generate", str(key_file), *settings_of(vault, key_file))
    with pytest.raises(ConfigError, match="line 2: wrapped keys are only supported by brokers"):
        read_key_file(key_file)


def test_the_token_is_read_again_from_its_file(vault: Transit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VAULT_TOKEN")
    token = tmp_path / "token"
    wrapper = wrapper_for("vault", config(vault, vault_token_file=token))
    with pytest.raises(ConfigError, match="could not read"):
        wrapper.wrap(DATA_KEY)
    token.write_text("s.expired\n")
    with pytest.raises(ConfigError, match="403 permission denied"):
        wrapper.wrap(DATA_KEY)
    token.write_text(f"{TOKEN}\n")
    assert wrapper.unwrap(wrapper.wrap(DATA_KEY)) == DATA_KEY


def test_a_redirect_does_not_carry_the_token_elsewhere(vault: Transit) -> None:
    with transit() as other:
        vault.redirect = f"{other.url}/v1/transit/encrypt/{KEY}"
        with pytest.raises(ConfigError, match="refused to encrypt: 307"):
            wrapper_for("vault", config(vault)).wrap(DATA_KEY)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"vault_address": "http://vault.example:8200"}, "must be an https address"),
        ({"vault_address": ""}, "set encryption.vault_address"),
        ({"wrapping_key": ""}, "set encryption.wrapping_key"),
        ({"wrapping_key": "other"}, "400 encryption key not found"),
        ({"vault_mount": "other"}, "404 no handler for route"),
        ({"vault_address": "http://127.0.0.1:9"}, "does not answer"),
    ],
)
def test_wrong_settings_say_what_to_do(
    vault: Transit, changes: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VAULT_ADDR", raising=False)
    with pytest.raises(ConfigError, match=why):
        wrapper_for("vault", config(vault, **changes)).wrap(DATA_KEY)


def test_a_sealed_vault_and_a_key_that_is_too_old_say_so(vault: Transit) -> None:
    wrapper = wrapper_for("vault", config(vault))
    wrapped = wrapper.wrap(DATA_KEY)
    vault.rotate()
    assert wrapper.unwrap(wrapped) == DATA_KEY
    vault.least_version = 2
    with pytest.raises(ConfigError, match="400 ciphertext or signature version is disallowed by policy"):
        wrapper.unwrap(wrapped)
    vault.is_sealed = True
    with pytest.raises(ConfigError, match="503 Vault is sealed"):
        wrapper.wrap(DATA_KEY)


def test_a_token_is_needed(vault: Transit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VAULT_TOKEN")
    with pytest.raises(ConfigError, match=r"set encryption.vault_token_file or \$VAULT_TOKEN"):
        wrapper_for("vault", config(vault)).wrap(DATA_KEY)


def test_an_unknown_service_is_named(tmp_path: Path) -> None:
    key_file = tmp_path / "keys"
    key_file.touch(0o600)
    key_file.write_text("1 other-kms:abc\n")
    with pytest.raises(ConfigError, match="keys wrapped by 'other-kms' are not supported"):
        read_key_file(key_file, Unwrapper(EncryptionConfig()))


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL_KMS": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():
        monkeypatch.setenv(name, value)
    import boto3

    client = boto3.client("kms")
    yield client.create_key()["KeyMetadata"]["Arn"]
    client.close()
    server.stop()


def test_aws_kms_wraps_and_unwraps(aws: str) -> None:
    wrapper = wrapper_for("aws-kms", EncryptionConfig(key_wrapping="aws-kms", wrapping_key=aws))
    wrapped = wrapper.wrap(DATA_KEY)
    assert wrapped.startswith("aws-kms:")
    assert wrapper.unwrap(wrapped) == DATA_KEY
    with pytest.raises(ConfigError, match="AWS KMS refused to decrypt"):
        wrapper.unwrap("aws-kms:" + "A" * 64)
    with pytest.raises(ConfigError, match="not valid base64"):
        wrapper.unwrap("aws-kms:!")


def test_aws_kms_needs_a_key_to_wrap_with(aws: str) -> None:
    assert aws
    with pytest.raises(ConfigError, match=r"set encryption\.wrapping_key"):
        wrapper_for("aws-kms", EncryptionConfig(key_wrapping="aws-kms")).wrap(DATA_KEY)
