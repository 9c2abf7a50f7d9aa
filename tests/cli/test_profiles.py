from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.cli.profiles import Profile, chosen, merged, profiles
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli

FILE = """
[log]
flush = "ack"

[brokers.test]
servers = "localhost:9092"

[brokers.prod]
servers = "a.example:9093,b.example:9093"
ca_file = "ca.pem"
sasl = "SCRAM-SHA-512"
user = "ann"
password = "swordfish"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ottla.toml"
    path.write_text(FILE)
    return path


def test_profiles_are_found_by_name_and_their_files_are_relative_to_the_configuration(file: Path) -> None:
    known = profiles(file)
    assert known == {
        "test": Profile(servers="localhost:9092"),
        "prod": Profile(
            servers="a.example:9093,b.example:9093",
            ca_file=str(file.parent / "ca.pem"),
            sasl="SCRAM-SHA-512",
            user="ann",
            password="swordfish",
        ),
    }
    assert "swordfish" not in repr(known)


def test_a_name_is_looked_up_and_anything_else_is_an_address(file: Path) -> None:
    known = profiles(file)
    assert chosen("prod", known) is known["prod"]
    assert chosen("prod:9092", known) == Profile(servers="prod:9092")
    assert chosen("localhost", known) == Profile(servers="localhost")


def test_a_misspelled_profile_gets_a_suggestion(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no \[brokers.prd\].*did you mean prod\? .* write prd:9092"):
        chosen("prd", profiles(file))


def test_options_win_over_the_profile() -> None:
    profile = Profile(servers="a", user="ann", tls=True)
    assert merged(profile, {"user": "bob", "tls": False, "ca_file": None}) == Profile(servers="a", user="bob", tls=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[brokers.x]\ntls = true\n", '[brokers.x] has no servers; write servers = "host:9092"'),
        ('[brokers.x]\nserver = "a"\n', "ottla.toml:2: unknown setting brokers.x.server; did you mean"),
        ("[brokers.x]\nservers = 1\n", "ottla.toml:2: brokers.x.servers: expected"),
        ('[brokers.x]\nservers = "a"\nsasl = "GSSAPI"\n', "ottla.toml:3: brokers.x.sasl: expected"),
        ('[brokers]\nx = "a:9092"\n', "ottla.toml:2: brokers.x must be a table; write settings below [brokers.NAME]"),
        ("brokers = 1\n", "ottla.toml:1: brokers must be a table; write settings below [brokers.NAME]"),
        ('[brokers."a.b"]\nservers = "a"\n', "'a.b' is not a valid broker name: it looks like an address"),
    ],
)
def test_an_invalid_profile_is_refused_with_its_line(file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        profiles(file)
    assert problem in str(refused.value)


def test_a_command_connects_to_the_named_broker(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ottla.toml").write_text(
        f'[brokers.here]\nservers = "{cli.servers}"\n[brokers.nowhere]\nservers = "127.0.0.1:1"\n'
    )
    assert cli.json("cluster", "brokers", "-b", "here")
    assert "127.0.0.1:1" in cli.refuses("cluster", "brokers", "-b", "nowhere", exit_code=1)


def test_the_profile_named_default_is_used_by_default(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text(f'[brokers.default]\nservers = "{cli.servers}"\n')
    cli("cluster", "brokers", "--config", "elsewhere.toml", OTTLA_BROKER=None)


def test_profiles_in_the_file_are_not_broker_settings(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ottla.toml").write_text(FILE)
    shown = cli("config", "show", OTTLA_PASSWORD="swordfish")
    assert "log.flush" in shown.stdout
    assert "swordfish" not in shown.stdout
    assert "brokers" not in shown.stdout
