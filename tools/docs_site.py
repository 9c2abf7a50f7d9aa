"""Hooks of MkDocs (mkdocs.yml): pages generated from the code and from files outside docs/."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from mkdocs.structure.files import File

from ottla.cli.main import COMMANDS, program
from ottla.cli.settings import sections
from ottla.core.config_docs import field_docs
from ottla.core.config_sources import variable_of
from ottla.core.config_values import in_units, to_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_ROOT: Final = Path(__file__).resolve().parent.parent
_TEXTS: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "vulnerabilities.md",
}
"""Files of the repository that are pages of the site."""
_API: Final = {
    "client": (
        "The client and the embedded broker",
        "Import these from `ottla`.",
        (
            *("ottla.client.blocking.producer.Producer", "ottla.client.blocking.consumer.Consumer"),
            *(
                "ottla.client.blocking.admin.Admin",
                "ottla.client.client.Client",
                "ottla.broker.embedded.EmbeddedBroker",
            ),
            *("ottla.client.config.ClientConfig", "ottla.client.config.ProducerConfig"),
            *("ottla.client.config.ConsumerConfig", "ottla.client.security.Security", "ottla.client.errors"),
        ),
    ),
    "queue": (
        "ottla.queue",
        "Import these from `ottla.queue`.",
        (
            *("ottla.queue.queue.Queue", "ottla.queue.consumer.Consumer", "ottla.queue.record.Message"),
            *("ottla.queue.config.QueueConfig", "ottla.queue.checking", "ottla.queue.errors"),
        ),
    ),
    "testing": (
        "ottla.testing",
        "Import these from `ottla.testing`; `broker` is `EphemeralBroker`, `cluster` is `EphemeralCluster`.",
        (
            *("ottla.testing.ephemeral.EphemeralBroker", "ottla.testing.ephemeral_cluster.EphemeralCluster"),
            *("ottla.testing.cluster_node.ClusterNode", "ottla.testing.snapshots.Snapshot"),
            *("ottla.broker.faults.faults.Faults", "ottla.broker.faults.fault.Fault"),
        ),
    ),
    "spark": (
        "ottla.spark",
        "Import these from `ottla.spark`.",
        ("ottla.spark.environment.session.session", "ottla.spark.tables.table"),
    ),
    "schema": (
        "ottla.schema",
        "Clients of a schema registry, and serializers.",
        ("ottla.schema.registry", "ottla.schema.avro", "ottla.schema.json_schema", "ottla.schema.protobuf"),
    ),
}
_LINK: Final = re.compile(r"\[([^\]]*)\]\(((?!https?:|mailto:|#)[^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, page in _TEXTS.items():
        text = (_ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_relinked(text, from_docs=False)))
    generated = {"reference/commands.md": _commands(), "reference/settings.md": _settings()}
    generated["decisions/index.md"] = _decisions()
    generated |= {f"reference/api-{name}.md": _api(*about) for name, about in _API.items()}
    for page, lines in generated.items():
        files.append(File.generated(config, page, content="\n".join(lines) + "\n"))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    if page.file.src_uri in _TEXTS.values() or page.file.src_uri.startswith(("reference/", "decisions/index")):
        return markdown
    return _relinked(markdown, from_docs=True)


def _relinked(text: str, *, from_docs: bool) -> str:
    """Links to pages of the site as such, other links into the repository to the repository."""

    def target(found: re.Match[str]) -> str:
        words, path, anchor = found[1], found[2], found[3] or ""
        inside = path.removeprefix("../") if from_docs and path.startswith("../") else path
        if from_docs and inside == path:
            return found[0]
        if inside in _TEXTS:
            return f"[{words}]({_TEXTS[inside]}{anchor})"
        if not from_docs and inside.startswith("docs/"):
            page = inside.removeprefix("docs/") or "."
            return f"[{words}]({'decisions/index.md' if page == 'decisions/' else page}{anchor})"
        if from_docs and (_ROOT / "docs" / inside).exists():
            return found[0]  # within docs/, from a folder
        return _in_repository(words, inside)

    return _LINK.sub(target, text)


def _in_repository(words: str, path: str) -> str:
    if not (_ROOT / path).exists():
        raise ValueError(f"broken link: [{words}]({path}) does not exist in the repository")
    address = os.environ.get("DOCS_REPOSITORY")
    if address:
        return f"[{words}]({address.rstrip('/')}/blob/main/{path})"
    return words if path in words else f"{words} (`{path}`)"


def _decisions() -> Iterator[str]:
    yield "# Decisions\n"
    for path in sorted((_ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        yield f"- [{title}]({path.name})"


def _api(title: str, about: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"# {title}"
    yield f"\n{about}"
    for name in names:
        yield f"\n::: {name}"


def _commands() -> Iterator[str]:
    yield "# Commands"
    yield "\nThis page is generated from `ottla COMMAND --help`. [The command line](../command-line.md) is a tour."
    for name in COMMANDS:
        command = program.get_command(click.Context(program, info_name="ottla"), name)
        if command is not None:
            yield from _command(command, click.Context(program, info_name="ottla"), name, 2)


def _command(command: click.Command, parent: click.Context, name: str, depth: int) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name, max_content_width=100, terminal_width=100)
    yield f"\n{'#' * depth} {context.command_path}\n"
    yield "```text"
    yield command.get_help(context)
    yield "```"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            if inner is not None and not inner.hidden:
                yield from _command(inner, context, each, depth + 1)


def _settings() -> Iterator[str]:
    yield "# Settings"
    yield "\nThis page is generated from the code, as is `ottla config example`."
    yield "[Configuration](../configuration.md) describes the sources of settings and their values."
    for section, kind in sections().items():
        yield f"\n## {section}\n"
        docs, defaults = field_docs(kind), kind()
        for name in kind.__struct_fields__:
            value = getattr(defaults, name)
            units = in_units(name, value)
            default = f"`{to_toml(value)}`" + (f" ({units})" if units else "")
            yield f"### {section}.{name}\n"
            yield f"{docs.get(name, '')}\n"
            yield f"Default: {default}. Variable: `{variable_of(f'{section}.{name}')}`.\n"
