"""`ottla quota`: client quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.arguments import ByteRate
from ottla.cli.confirming import confirm, with_yes_option
from ottla.cli.connecting import with_broker_options
from ottla.cli.output import show_rows, with_output_option
from ottla.cli.summaries import CommandGroup
from ottla.cli.tables import printable
from ottla.core.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.cli.connecting import Reach
    from ottla.client.client import Client

    Entity = dict[str, str | None]

_KINDS: Final = ("user", "client-id", "ip")
_LIMITS: Final = {
    "producer_byte_rate": "Bytes per second that may be produced.",
    "consumer_byte_rate": "Bytes per second that may be fetched.",
    "request_percentage": "Percentage of a broker's request time.",
    "connection_creation_rate": "New connections per second; for ip quotas only.",
}
_COLUMNS: Final = ("of", *_LIMITS)


@click.group(cls=CommandGroup)
def quota() -> None:
    """List and change client quotas.

    A quota is of a user, a client id, both, or an address: user=ann, client-id=etl, ip=10.0.0.7. The name alone, such
    as `user`, is the default of all without a more specific quota. The most specific quota applies.
    """


@quota.command(
    "list",
    epilog="""\b
Examples:
  ottla quota list
  ottla quota list -o json
""",
)
@with_output_option
@with_broker_options
def list_quotas(*, reach: Reach, output: str) -> None:
    """List quotas."""
    found = sorted(reach.run(lambda client: client.admin.list_quotas()), key=lambda entry: _words(entry.entity))
    if output == "json":
        rows: list[dict[str, object]] = [{"of": entry.entity, **entry.limits} for entry in found]
    else:
        rows = [
            {"of": _words(entry.entity), **{name: _number(entry.limits.get(name)) for name in _LIMITS}}
            for entry in found
        ]
    show_rows(rows, _COLUMNS, output)


@quota.command(
    "set",
    epilog="""\b
Examples:
  ottla quota set user=ann --producer-byte-rate 1MB
  ottla quota set user client-id=etl --consumer-byte-rate 5MB --request-percentage 20
  ottla quota set ip=10.0.0.7 --connection-creation-rate 10
""",
)
@click.argument("entity", metavar="KIND[=NAME]...", nargs=-1, required=True)
@click.option("--connection-creation-rate", type=click.FloatRange(min=0), help=_LIMITS["connection_creation_rate"])
@click.option("--request-percentage", type=click.FloatRange(min=0), help=_LIMITS["request_percentage"])
@click.option("--consumer-byte-rate", type=ByteRate(), help=_LIMITS["consumer_byte_rate"])
@click.option("--producer-byte-rate", type=ByteRate(), help=_LIMITS["producer_byte_rate"])
@with_broker_options
def set_quota(entity: tuple[str, ...], *, reach: Reach, **options: Any) -> None:
    """Set limits; others are unchanged."""
    whose = _entity(entity)
    limits = {name: given for name in _LIMITS if (given := options.pop(name)) is not None}
    if not limits:
        raise ConfigError(f"nothing to set: give {_flags(_LIMITS)}")
    reach.run(lambda client: client.admin.alter_quota(whose, limits))
    click.echo(f"quota of {printable(_words(whose))} set")


@quota.command(
    epilog="""\b
Examples:
  ottla quota delete user=ann
  ottla quota delete user=ann client-id=etl --yes
""",
)
@click.argument("entity", metavar="KIND[=NAME]...", nargs=-1, required=True)
@with_yes_option
@with_broker_options
def delete(entity: tuple[str, ...], *, reach: Reach, yes: bool) -> None:
    """Delete a quota."""
    whose = _entity(entity)
    confirm(f"Delete the quota of {printable(_words(whose))} at {reach.servers}?", yes=yes)

    async def ask(client: Client) -> None:
        limits = next((one.limits for one in await client.admin.list_quotas() if one.entity == whose), None)
        if limits is None:
            raise OttlaError(f"there is no quota of {_words(whose)}")
        await client.admin.alter_quota(whose, dict.fromkeys(limits))

    reach.run(ask)
    click.echo(f"quota of {printable(_words(whose))} deleted")


def _entity(parts: Iterable[str]) -> Entity:
    entity: Entity = {}
    for part in parts:
        kind, is_named, name = part.partition("=")
        if kind not in _KINDS or (is_named and not name):
            raise ConfigError(f"expected user=NAME, client-id=NAME or ip=ADDRESS, got {part!r}")
        if kind in entity:
            raise ConfigError(f"{kind} is given twice")
        entity[kind] = name if is_named else None
    return entity


def _words(entity: Entity) -> str:
    """The entity in command line syntax."""
    return " ".join(
        kind if entity[kind] is None else f"{kind}={entity[kind]}" for kind in sorted(entity, key=_KINDS.index)
    )


def _number(limit: float | None) -> str:
    return "-" if limit is None else f"{limit:.15g}"


def _flags(limits: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in limits)
