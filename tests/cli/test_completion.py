from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli


def complete(cli: Cli, words: str) -> list[str]:
    """The completions offered for the last word."""
    count = len(words.split(" ")) - 1
    done = cli(_OTTLA_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(count))
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_accepts_the_script(cli: Cli, tmp_path: Path, shell: str) -> None:
    script = tmp_path / "script"
    script.write_text(cli("completion", shell).stdout)
    assert "_OTTLA_COMPLETE" in script.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    assert subprocess.run([shell, "-n", str(script)], check=False).returncode == 0


def test_commands_verbs_and_options_are_completed(cli: Cli) -> None:
    assert complete(cli, "ottla co") == ["completion", "config", "consume"]
    assert complete(cli, "ottla group de") == ["delete", "delete-offsets", "describe"]
    assert complete(cli, "ottla group reset-offsets g --sh") == ["--shift-by"]
    assert complete(cli, "ottla topic list -o ") == ["table", "json"]


def test_brokers_are_completed_by_their_profile_names(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ottla.toml").write_text('[brokers.prod]\nservers = "a"\n[brokers.test]\nservers = "b"\n')
    assert complete(cli, "ottla topic list --broker p") == ["prod"]


def test_an_unknown_shell_is_a_one_line_error(cli: Cli) -> None:
    assert cli.refuses("completion", "tcsh", exit_code=2).startswith("invalid value for '{bash|zsh|fish}': 'tcsh'")
