"""Every command has help with valid examples."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from ottla.cli.main import program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def verbs(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from verbs(found, (*path, name))


VERBS = dict(verbs(program))


@pytest.mark.parametrize(
    ("alias", "path"),
    [
        (("topics", "ls"), ("topic", "list")),
        (("topic", "rm"), ("topic", "delete")),
        (("users", "ls"), ("user", "list")),
    ],
)
def test_lists_and_deletions_have_short_names(alias: tuple[str, ...], path: tuple[str, ...]) -> None:
    shown = [CliRunner().invoke(program, [*words, "--help"]).stdout.split("\n", 1)[1] for words in (alias, path)]
    assert shown[0] == shown[1]


LISTING = {
    ("lake", "status"),
    ("schema", "list"),
    ("schema", "show"),
    ("acl", "list"),
    ("quota", "list"),
    ("role", "list"),
    ("bench",),
    ("cluster", "brokers"),
    ("cluster", "configs", "show"),
    ("cluster", "describe"),
    ("cluster", "reassign"),
    ("cluster", "status"),
    ("config", "show"),
    ("consume",),
    ("dmqp", "expose"),
    ("dmqp", "list"),
    ("doctor",),
    ("group", "config"),
    ("group", "describe"),
    ("group", "list"),
    ("group", "reset-offsets"),
    ("keys", "status"),
    ("pipeline", "status"),
    ("queue", "info"),
    ("queue", "list"),
    ("token", "create"),
    ("token", "list"),
    ("topic", "describe"),
    ("topic", "list"),
    ("transaction", "describe"),
    ("transaction", "find-hanging"),
    ("transaction", "list"),
    ("transaction", "producers"),
    ("user", "list"),
}
DESTROYING = {
    ("schema", "delete"),
    ("log", "repair"),
    ("acl", "delete"),
    ("quota", "delete"),
    ("role", "delete"),
    ("cluster", "drain"),
    ("cluster", "elect"),
    ("group", "delete"),
    ("group", "delete-offsets"),
    ("topic", "delete"),
    ("topic", "delete-records"),
    ("transaction", "abort"),
    ("user", "delete"),
}


def examples() -> Iterator[tuple[tuple[str, ...], str]]:
    for path, command in VERBS.items():
        for line in (command.epilog or "").splitlines():
            for words in re.findall(r"\bottla (?:'[^']*'|[^|()<>*])+", line):
                yield path, words.strip(' "$').strip("'" if words.count("'") % 2 else "")


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_help_shows_examples(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(program, [*path, "--help"], prog_name="ottla")
    assert shown.exit_code == 0
    assert "Examples:\n  " in shown.stdout
    assert f"ottla {' '.join(path)}" in shown.stdout
    assert VERBS[path].help


@pytest.mark.parametrize(("path", "example"), list(examples()))
def test_every_example_parses(
    path: tuple[str, ...], example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("offsets.csv", "orders.jsonl", "orders.rec", "data"):
        (tmp_path / file).mkdir() if file == "data" else (tmp_path / file).touch()
    (tmp_path / "data" / "orders-0").mkdir()
    words = shlex.split(example)[1:]
    for length in range(len(words), 0, -1):
        if tuple(words[:length]) in VERBS:
            VERBS[tuple(words[:length])].make_context("verb", words[length:])
            return
    pytest.fail(f"{example}, an example of {' '.join(path)}, names no verb")


def test_every_listing_can_be_json() -> None:
    assert {path for path, verb in VERBS.items() if _has(verb, "-o")} == LISTING


def test_every_destructive_command_asks_for_confirmation() -> None:
    assert {path for path, verb in VERBS.items() if _has(verb, "--yes")} == DESTROYING


def _has(verb: click.Command, option: str) -> bool:
    return any(option in parameter.opts for parameter in verb.params)


def test_every_command_in_a_listing_has_a_whole_sentence() -> None:
    shown = CliRunner().invoke(program, ["queue", "--help"]).stdout
    assert "one per line, and commit." in " ".join(shown.split())
    assert "..." not in shown.partition("Commands:")[2]


def test_an_unknown_command_gets_a_suggestion() -> None:
    refused = CliRunner().invoke(program, ["serv"], prog_name="ottla")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("ottla: no such command serv (did you mean serve?); see ")
