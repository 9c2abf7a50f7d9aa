"""`ottla config`: effective settings, their sources, and all available settings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.output import painted, show_json, terminal_width, with_output_option
from ottla.cli.settings import load_settings, sections, with_settings_options
from ottla.cli.summaries import CommandGroup
from ottla.cli.tables import layout
from ottla.core.config_docs import field_docs
from ottla.core.config_sources import printable, variable_of
from ottla.core.config_values import MASK, in_units, to_plain, to_toml, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ottla.core.config import Setting, Settings


@click.group(cls=CommandGroup)
def config() -> None:
    """Show settings and where their values come from."""


@config.command(
    epilog="""\b
Examples:
  ottla config show
  ottla config show --config /etc/ottla.toml --set log.flush=ack -v
  ottla config show -o json | jq '.settings[] | select(.source != "default")'
""",
)
@with_settings_options
@with_output_option
@click.option("-v", "--verbose", is_flag=True, help="Also print each setting's documentation and default.")
def show(config_file: Path | None, assignments: Sequence[str], *, output: str, verbose: bool) -> None:
    """Print effective values and their sources."""
    settings = load_settings(config_file, assignments)
    docs = _all_docs(settings) if verbose else {}
    if output == "json":
        show_json(_plain(settings, docs))
    else:
        click.echo("\n".join(_as_table(settings, docs, terminal_width(sys.stdout))))


@config.command(
    epilog="""\b
Examples:
  ottla config example > ottla.toml
""",
)
def example() -> None:
    """Print a complete TOML file: every setting, its documentation and its default."""
    click.echo("\n".join(_example(sections())))


def _as_table(settings: Settings, docs: Mapping[str, str], width: int | None) -> Iterator[str]:
    rows = [{"setting": one.name, "value": _spoken(one, one.value), "source": one.source} for one in settings.values]
    heading, *texts = layout(("setting", "value", "source"), rows, width)
    yield painted(heading, sys.stdout, bold=True)
    for setting, text in zip(settings.values, texts, strict=True):
        yield text
        if docs:
            yield from _explanation(setting, docs.get(setting.name, ""))


def _explanation(setting: Setting, doc: str) -> Iterator[str]:
    yield from (f"    {line}".rstrip() for line in doc.splitlines())
    yield f"    Default: {_spoken(setting, setting.default)}. Variable: {variable_of(setting.name)}."
    yield ""


def _spoken(setting: Setting, value: object) -> str:
    if value is None:
        return "none"
    value = without_secrets(setting.name, value)
    if value == MASK:
        return MASK
    units = in_units(setting.name, value)
    return to_toml(value) if units is None else f"{to_toml(value)} ({units})"


def _plain(settings: Settings, docs: Mapping[str, str]) -> dict[str, object]:
    listed = []
    for one in settings.values:
        entry: dict[str, object] = {"name": one.name, "value": _hidden(one, one.value), "source": one.source}
        if docs:
            entry |= {"default": _hidden(one, one.default), "doc": docs.get(one.name, "")}
        listed.append(entry)
    return {"file": None if settings.file is None else printable(settings.file), "settings": listed}


def _hidden(setting: Setting, value: object) -> object:
    return to_plain(without_secrets(setting.name, value))


def _example(known: Mapping[str, type[Any]]) -> Iterator[str]:
    yield "# Every setting of Ottla with its default. Remove the # before a setting to change it."
    for section, kind in known.items():
        yield f"\n[{section}]"
        docs = field_docs(kind)
        defaults = kind()
        for name in kind.__struct_fields__:
            yield ""
            yield from (f"# {line}".rstrip() for line in docs.get(name, "").splitlines())
            value = getattr(defaults, name)
            units = in_units(name, value)
            yield f"#{name} = {to_toml(value)}" + (f"  # {units}" if units else "")


def _all_docs(settings: Settings) -> dict[str, str]:
    return {
        f"{section}.{key}": doc
        for section, built in settings.configs.items()
        for key, doc in field_docs(type(built)).items()
    }
