from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest

from ottla.cli.connecting import DEFAULT_SERVERS, Reach, reach_from
from ottla.cli.profiles import Profile
from ottla.client.security import Security
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

NOTHING: dict[str, Any] = {
    "servers": None, "tls": False, "ca_file": None, "cert_file": None, "key_file": None, "sasl": None, "user": None,
    "config_file": None,
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in ("OTTLA_CONFIG", "OTTLA_PASSWORD"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def reach(**given: Any) -> Reach:
    return reach_from({**NOTHING, **given})


def test_the_default_is_the_usual_address_without_security() -> None:
    usual = reach()
    assert (usual.servers, usual.is_chosen, usual.security()) == (DEFAULT_SERVERS, False, None)
    assert reach(servers="a:1").is_chosen


def test_options_of_the_command_are_not_consumed() -> None:
    options = {**NOTHING, "output": "json"}
    reach_from(options)
    assert options == {"output": "json"}


@pytest.mark.parametrize("option", ["ca_file", "cert_file"])
def test_a_certificate_means_tls(folder: Path, option: str) -> None:
    (folder / "c.pem").touch()
    security = reach(**{option: "c.pem"}).security()
    assert security is not None
    assert security.tls is True


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="--broker: expected host:port"):
        reach(servers=" ")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"--cert-file: there is no file c\.pem"):
        reach(cert_file="c.pem")


def test_the_password_comes_from_the_environment_then_the_profile_then_a_prompt(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def password(**given: Any) -> str | None:
        security = reach(sasl="PLAIN", **given).security()
        assert isinstance(security, Security)
        return security.password

    monkeypatch.setattr(click, "prompt", lambda text, **_: f"typed for {text}")
    (folder / "ottla.toml").write_text('[brokers.prod]\nservers = "a"\nuser = "ann"\npassword = "written"\n')
    assert password(user="bob") == "typed for Password of bob"
    assert password(servers="prod") == "written"
    monkeypatch.setenv("OTTLA_PASSWORD", "set")
    assert password(servers="prod") == password(user="bob") == "set"


def test_a_user_without_a_mechanism_is_refused() -> None:
    with pytest.raises(ConfigError, match="username and password need a mechanism"):
        Reach(Profile(servers="a", user="ann", password="x")).security()
