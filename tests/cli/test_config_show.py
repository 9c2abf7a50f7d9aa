from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec import Struct

from ottla.cli import config as config_command
from ottla.cli import settings as cli_settings
from ottla.cli.main import program
from ottla.core.config import load


class DiskConfig(Struct, frozen=True, kw_only=True):
    segment_bytes: int = 1 << 30
    """Roll to a new file.

    Once this is reached."""
    retention_ms: int | None = 604_800_000
    folder: Path = Path("data")
    """Where it all is."""
    names: tuple[str, ...] = ("a", 'b"\x7f')
    disk_password: str | None = None

    def __post_init__(self) -> None:
        if self.segment_bytes < 1024:
            raise ValueError(f"segment_bytes must be at least 1024, got {self.segment_bytes}")


SECTIONS: dict[str, type] = {"log": DiskConfig}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, an environment without settings, and a test section."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("OTTLA_")]:
        monkeypatch.delenv(variable)
    for module in (config_command, cli_settings):
        monkeypatch.setattr(module, "sections", lambda: SECTIONS)
    return tmp_path


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(program, arguments, env=environment, prog_name="ottla")


def test_every_value_is_shown_with_its_source_in_aligned_columns(home: Path) -> None:
    (home / "ottla.toml").write_text('[log]\nsegment_bytes = "64MiB"\n')
    shown = run("config", "show", "--set", "log.folder=/srv/ottla", OTTLA_LOG_RETENTION_MS="none")

    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "SETTING            VALUE               SOURCE",
        "log.segment_bytes  67108864 (64MiB)    ottla.toml:2",
        "log.retention_ms   none                OTTLA_LOG_RETENTION_MS",
        'log.folder         "/srv/ottla"        --set',
        'log.names          ["a", "b\\"\\u007f"]  default',
        "log.disk_password  none                default",
    ]


def test_the_file_comes_from_the_flag_then_the_variable_then_this_folder(home: Path) -> None:
    for number, name in enumerate(["flag.toml", "variable.toml", "ottla.toml"], 1):
        (home / name).write_text(f"[log]\nretention_ms = {number}\n")

    by_flag = run("config", "show", "--config", "flag.toml", OTTLA_CONFIG="variable.toml")
    by_variable = run("config", "show", OTTLA_CONFIG="variable.toml")
    by_folder = run("config", "show", OTTLA_CONFIG="")

    assert "flag.toml:2" in by_flag.stdout
    assert "variable.toml:2" in by_variable.stdout
    assert "ottla.toml:2" in by_folder.stdout


def test_an_explicitly_named_file_must_exist(home: Path) -> None:
    expected = "ottla: no.toml: cannot be read: No such file or directory\n"
    by_flag = run("config", "show", "--config", "no.toml")
    by_variable = run("config", "show", OTTLA_CONFIG="no.toml")
    (home / "ottla.toml").symlink_to("no.toml")
    by_folder = run("config", "show")

    assert (by_flag.exit_code, by_flag.stderr) == (2, expected)
    assert (by_variable.exit_code, by_variable.stderr) == (2, expected)
    assert (by_folder.exit_code, by_folder.stderr) == (2, expected.replace("no.toml", "ottla.toml"))


def test_the_last_of_two_values_for_a_setting_wins() -> None:
    shown = run("config", "show", "--set", "log.retention_ms=1", "--set", "log.retention_ms = 2s")

    assert "2000 (2s)" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "log.folder"], "--set: expected SECTION.KEY=VALUE, but one has no ="),
        (["--set", "log.foldr=x"], "--set: unknown setting log.foldr; did you mean log.folder?"),
        (["--set", "log.segment_bytes=5"], "--set: log.segment_bytes must be at least 1024, got 5"),
    ],
)
def test_an_invalid_setting_is_a_one_line_error_and_exit_code_2(arguments: list[str], message: str) -> None:
    shown = run("config", "show", *arguments)

    assert (shown.exit_code, shown.stderr, shown.stdout) == (2, f"ottla: {message}\n", "")


def test_an_error_never_shows_a_value_given_without_a_name() -> None:
    assert "hunter2" not in run("config", "show", "--set", "log.disk_passwd hunter2").output


@pytest.mark.parametrize("flags", [[], ["--verbose"], ["-o", "json"], ["-o", "json", "--verbose"]])
def test_a_secret_is_masked(flags: list[str]) -> None:
    shown = run("config", "show", *flags, OTTLA_LOG_DISK_PASSWORD="hunter2")

    assert shown.exit_code == 0
    assert "hunter2" not in shown.output
    assert "********" in shown.output


def test_json_output_has_every_setting(home: Path) -> None:
    (home / "ottla.toml").write_text('[log]\nfolder = "x"\n')
    shown = json.loads(run("config", "show", "-o", "json").stdout)

    assert shown["file"] == "ottla.toml"
    assert shown["settings"][0] == {"name": "log.segment_bytes", "value": 1 << 30, "source": "default"}
    assert shown["settings"][2] == {"name": "log.folder", "value": "x", "source": "ottla.toml:2"}
    assert shown["settings"][3]["value"] == ["a", 'b"\x7f']


def test_verbose_adds_the_documentation_and_the_default() -> None:
    lines = run("config", "show", "--verbose", "--set", "log.segment_bytes=2048").stdout.splitlines()
    entry = json.loads(run("config", "show", "--verbose", "-o", "json").stdout)["settings"][2]

    assert lines[2:7] == [
        "    Roll to a new file.",
        "",
        "    Once this is reached.",
        "    Default: 1073741824 (1GiB). Variable: OTTLA_LOG_SEGMENT_BYTES.",
        "",
    ]
    assert (entry["default"], entry["doc"]) == ("data", "Where it all is.")


def test_the_example_file_documents_every_setting_and_changes_none(home: Path) -> None:
    example = run("config", "example").stdout

    assert tomllib.loads(example) == {"log": {}}
    assert "# Once this is reached.\n#segment_bytes = 1073741824  # 1GiB\n" in example

    (home / "all.toml").write_text(uncommented(example))
    settings = load(SECTIONS, file=home / "all.toml")
    assert settings.configs == {"log": DiskConfig()}
    assert all(one.source.startswith(str(home)) for one in settings.values)


def uncommented(example: str) -> str:
    """The example with each `#key = value` uncommented; documentation has a space after the #."""
    lines = example.splitlines()
    return "\n".join(line[1:] if re.match(r"#\w", line) else line for line in lines)


def test_the_shipped_example_file_is_complete_and_has_the_real_defaults(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(home)
    real = cli_settings.sections()
    (home / "all.toml").write_text(uncommented(run("config", "example").stdout))
    settings = load(real, file=home / "all.toml")

    assert settings.configs == {name: kind() for name, kind in real.items()}
    assert {one.source.rpartition(":")[0] for one in settings.values} == {str(home / "all.toml")}


def test_a_real_process_shows_its_settings_and_refuses_invalid_ones() -> None:
    # A relative PYTHONPATH does not refer to this test's folder.
    environment = {**os.environ, "PYTHONPATH": str(Path(cli_settings.__file__).parents[2])}

    def ottla_process(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ottla", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    shown = ottla_process("config", "show")
    refused = ottla_process("config", "show", "--set", "log.sgment_bytes=1")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("SETTING")
    assert "log.segment_bytes" in shown.stdout
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == ("ottla: --set: unknown setting log.sgment_bytes; did you mean log.segment_bytes?\n")


@pytest.mark.parametrize("output", ["text", "json"])
def test_passwords_in_addresses_and_arguments_of_key_commands_are_not_shown(output: str) -> None:
    flags = [
        "--set",
        'encryption.key_command=["vault", "read", "--token=s3cret-token"]',
        "--set",
        "security.oauth_jwks=https://ann:s3cret-pass@idp.example/jwks",
        "--set",
        "security.oauth_issuer=x",
        "--set",
        "security.oauth_audience=x",
    ]
    script = "from ottla.cli.main import program; program()"
    command = [sys.executable, "-c", script, "config", "show", *flags, *(["-o", "json"] if output == "json" else [])]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "vault" in shown
    assert "idp.example/jwks" in shown
    assert "s3cret" not in shown
