"""`ottla schema`: list, register, check and delete schemas of a registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.cli.confirming import confirm, with_yes_option
from ottla.cli.output import show_json, show_rows, with_output_option
from ottla.cli.schemas.files import schema_in, text_in
from ottla.cli.summaries import CommandGroup
from ottla.cli.tables import counted, printable
from ottla.core.config_sources import DEFAULT_HTTP_PORT, REGISTRY_VARIABLE
from ottla.core.errors import ConfigError, OttlaError
from ottla.http.registry_config import REGISTRY_PREFIX
from ottla.schema.connection import RegistryConnection
from ottla.schema.errors import RegistryRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NOT_CONFIGURED: Final = (40401, 40408, 40409)

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def with_registry_options(command: Decorated) -> Decorated:
    """Give a command `--registry` and `--ca-file`, as `registry`."""
    import functools

    @functools.wraps(command)
    def run(*, registry_url: str, ca_file: str | None, **given: Any) -> object:
        return command(registry=RegistryConnection(registry_url, ca_file=ca_file), **given)

    address = click.option(
        "--registry",
        "registry_url",
        metavar="URL",
        envvar=REGISTRY_VARIABLE,
        show_envvar=True,
        default=f"http://127.0.0.1:{DEFAULT_HTTP_PORT}{REGISTRY_PREFIX}",
        show_default=True,
        help="URL of the schema registry, with user:password@ if it needs a login.",
    )
    authority = click.option("--ca-file", metavar="FILE", help="CA certificates to trust, in PEM.")
    return address(authority(run))  # type: ignore[return-value]  # with other options


def with_schema_options(command: Decorated) -> Decorated:
    kind = click.option(
        "--type",
        "kind",
        type=click.Choice(["AVRO", "JSON", "PROTOBUF"], case_sensitive=False),
        help="Schema type; otherwise by the file's ending (.avsc, .json, .proto).",
    )
    references = click.option(
        "--reference",
        "references",
        metavar="NAME=SUBJECT:VERSION",
        multiple=True,
        help="Reference to another schema; may be repeated.",
    )
    normalize = click.option("--normalize", is_flag=True, help="Normalize the schema.")
    return kind(references(normalize(command)))


@click.group(cls=CommandGroup)
def schema() -> None:
    """List, register, check and delete schemas of a registry.

    The registry is that of a broker, or any other with the API of Confluent Schema Registry.
    """


@schema.command(
    "list",
    epilog="""\b
Examples:
  ottla schema list
  ottla schema list --prefix orders- -o json
""",
)
@click.option("--prefix", default="", help="Only subjects that begin with this.")
@click.option("--deleted", is_flag=True, help="Include soft-deleted subjects and versions.")
@with_output_option
@with_registry_options
def list_schemas(prefix: str, deleted: bool, output: str, registry: RegistryConnection) -> None:  # noqa: FBT001 - by name
    """List subjects and their latest versions."""
    wanted = {"subjectPrefix": prefix or ":*:", "deleted": deleted, "latestOnly": True}
    found = registry.get(list[dict[str, Any]], "schemas", **wanted)
    rows = [each | {"type": each.get("schemaType", "AVRO")} for each in found]
    show_rows(rows, ("subject", "version", "id", "type"), output)


@schema.command(
    epilog="""\b
Examples:
  ottla schema show orders-value
  ottla schema show orders-value 2
  ottla schema show --id 17
  ottla schema show orders-value -o json
""",
)
@click.argument("subject", required=False)
@click.argument("version", default="latest")
@click.option("--id", "number", type=int, help="Show the schema with this id instead.")
@click.option("--deleted", is_flag=True, help="Also if it is soft-deleted.")
@with_output_option
@with_registry_options
def show(  # noqa: PLR0913
    subject: str | None,
    version: str,
    number: int | None,
    deleted: bool,  # noqa: FBT001
    output: str,
    registry: RegistryConnection,
) -> None:
    """Print a schema."""
    if (subject is None) == (number is None):
        raise ConfigError("give a SUBJECT or --id")
    found = (
        registry.get(dict[str, Any], "subjects", subject, "versions", version, deleted=deleted)
        if number is None
        else registry.get(dict[str, Any], "schemas", "ids", number)
    )
    if output == "json":
        show_json(found)
    else:
        click.echo(_pretty(found))


@schema.command(
    epilog="""\b
Examples:
  ottla schema register orders-value order.avsc
  ottla schema register orders-value order.proto --reference item.proto=items-value:1
""",
)
@click.argument("subject")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@with_schema_options
@with_registry_options
def register(subject: str, file: Path, registry: RegistryConnection, **options: Any) -> None:
    """Register the schema in FILE under SUBJECT."""
    normalize = options.pop("normalize")
    body = _body(file, **options)
    made = registry.post(dict[str, Any], "subjects", subject, "versions", body=body, normalize=normalize)
    click.echo(f"{printable(subject)}: version {made.get('version', '?')}, id {made['id']}")


@schema.command(
    epilog="""\b
Examples:
  ottla schema check orders-value order.avsc
""",
)
@click.argument("subject")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@with_schema_options
@with_registry_options
def check(subject: str, file: Path, registry: RegistryConnection, **options: Any) -> None:
    """Check whether the schema in FILE is compatible with SUBJECT; exit with 1 if not."""
    normalize = options.pop("normalize")
    body = _body(file, **options)
    path = ("compatibility", "subjects", subject, "versions")
    found = registry.post(dict[str, Any], *path, body=body, normalize=normalize, verbose=True)
    if found["is_compatible"]:
        click.echo("compatible")
        return
    for message in found.get("messages", ()):
        click.echo(printable(message), err=True)
    raise OttlaError(f"the schema is not compatible with {printable(subject)}")


@schema.command(
    epilog="""\b
Examples:
  ottla schema diff orders-value 1 2
  ottla schema diff orders-value 1
""",
)
@click.argument("subject")
@click.argument("old")
@click.argument("new", default="latest")
@with_registry_options
def diff(subject: str, old: str, new: str, registry: RegistryConnection) -> None:
    """Print the difference between two versions."""
    from difflib import unified_diff

    before, after = (registry.get(dict[str, Any], "subjects", subject, "versions", each) for each in (old, new))
    old_name, new_name = (f"{subject} version {each['version']}" for each in (before, after))
    lines = _pretty(before).splitlines(), _pretty(after).splitlines()
    for line in unified_diff(*lines, fromfile=old_name, tofile=new_name, lineterm=""):
        click.echo(line)


@schema.command(
    epilog="""\b
Examples:
  ottla schema delete orders-value
  ottla schema delete orders-value 2
  ottla schema delete orders-value --permanent --yes
""",
)
@click.argument("subject")
@click.argument("version", required=False)
@click.option("--permanent", is_flag=True, help="Permanently delete soft-deleted versions.")
@with_yes_option
@with_registry_options
def delete(subject: str, version: str | None, permanent: bool, yes: bool, registry: RegistryConnection) -> None:  # noqa: FBT001
    """Delete SUBJECT, or one of its versions."""
    what = f"{subject} version {version}" if version else subject
    confirm(f"Delete {printable(what)}{' permanently' if permanent else ''}?", yes=yes)
    path = ("subjects", subject, "versions", version) if version else ("subjects", subject)
    found = registry.delete(*path, permanent=permanent)
    numbers = found if isinstance(found, list) else [found]
    click.echo(f"{printable(subject)}: deleted version {', '.join(map(str, numbers))}")


@schema.command(
    epilog="""\b
Examples:
  ottla schema compatibility
  ottla schema compatibility orders-value
  ottla schema compatibility orders-value FULL_TRANSITIVE
  ottla schema compatibility --all NONE
""",
)
@click.argument("subject", required=False)
@click.argument("level", required=False)
@click.option("--all", "for_all", metavar="LEVEL", help="Set the level of all subjects that have no other.")
@with_registry_options
def compatibility(subject: str | None, level: str | None, for_all: str | None, registry: RegistryConnection) -> None:
    """Print or set the compatibility level: NONE, BACKWARD, FORWARD or FULL, or one of these with _TRANSITIVE."""
    path = ("config", subject) if subject else ("config",)
    wanted = level or for_all
    if wanted is not None:
        registry.put(*path, body={"compatibility": wanted.upper()})
    click.echo(_setting(registry, path, "compatibilityLevel"))


@schema.command(
    epilog="""\b
Examples:
  ottla schema mode
  ottla schema mode orders-value READONLY
  ottla schema mode --all READWRITE
""",
)
@click.argument("subject", required=False)
@click.argument("mode", required=False)
@click.option("--all", "for_all", metavar="MODE", help="Set the mode of all subjects that have no other.")
@click.option("--force", is_flag=True, help="Allow IMPORT although there are schemas.")
@with_registry_options
def mode(subject: str | None, mode: str | None, for_all: str | None, force: bool, registry: RegistryConnection) -> None:  # noqa: FBT001
    """Print or set the mode: READWRITE, READONLY or IMPORT."""
    path = ("mode", subject) if subject else ("mode",)
    wanted = mode or for_all
    if wanted is not None:
        registry.put(*path, body={"mode": wanted.upper()}, force=force)
    click.echo(_setting(registry, path, "mode"))


def _setting(registry: RegistryConnection, path: tuple[str, ...], key: str) -> str:
    """The mode of the subject, or the one it inherits."""
    try:
        return str(registry.get(dict[str, Any], *path)[key])
    except RegistryRefused as refused:
        if refused.code not in _NOT_CONFIGURED:
            raise
        return f"{registry.get(dict[str, Any], *path, defaultToGlobal=True)[key]} (inherited)"


@schema.command(
    "export",
    epilog="""\b
Examples:
  ottla schema export schemas.jsonl
  ottla schema export - --prefix orders-
""",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--prefix", default="", help="Only subjects that begin with this.")
@with_registry_options
def export_schemas(file: Path, prefix: str, registry: RegistryConnection) -> None:
    """Write all versions to FILE as lines of JSON, for `ottla schema import`."""
    found = registry.get(list[dict[str, Any]], "schemas", subjectPrefix=prefix or ":*:")
    lines = "".join(json.dumps(each) + "\n" for each in sorted(found, key=lambda one: one["id"]))
    with click.open_file(str(file), "w", encoding="utf-8") as written:
        written.write(lines)
    click.echo(counted(len(found), "version") + " exported", err=True)


@schema.command(
    "import",
    epilog="""\b
Examples:
  ottla schema import schemas.jsonl
""",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@with_registry_options
def import_schemas(file: Path, registry: RegistryConnection) -> None:
    """Register the versions in FILE with their ids. Subjects that exist must have the same ids."""
    given = list(_versions(file))
    subjects = dict.fromkeys(each["subject"] for each in given)
    for subject in subjects:
        registry.put("mode", subject, body={"mode": "IMPORT"}, force=True)
    try:
        for each in given:
            body = {key: each[key] for key in each if key not in ("subject", "guid", "deleted")}
            registry.post(object, "subjects", each["subject"], "versions", body=body)
    finally:
        for subject in subjects:
            registry.delete("mode", subject)
    click.echo(counted(len(given), "version") + " imported", err=True)


def _versions(file: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text_in(file).splitlines(), 1):
        try:
            given = json.loads(line)
            yield {**given, "subject": str(given["subject"]), "id": int(given["id"]), "version": int(given["version"])}
        except (ValueError, KeyError, TypeError):
            raise OttlaError(f"line {number} of {file} is not a version that `ottla schema export` wrote") from None


def _body(file: Path, kind: str | None, references: tuple[str, ...]) -> dict[str, object]:
    schema = schema_in(file, kind)
    return {"schema": schema.text, "schemaType": schema.type, "references": [_reference(each) for each in references]}


def _reference(text: str) -> dict[str, object]:
    name, equals, rest = text.partition("=")
    subject, colon, version = rest.rpartition(":")
    if not equals or not colon or not version.isdecimal():
        raise ConfigError(f"invalid reference {text!r} (use NAME=SUBJECT:VERSION)")
    return {"name": name, "subject": subject, "version": int(version)}


def _pretty(found: dict[str, Any]) -> str:
    text: str = found["schema"]
    if found.get("schemaType", "AVRO") == "PROTOBUF":
        return text.rstrip("\n")
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
