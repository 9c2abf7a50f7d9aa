"""`ottla token`: delegation tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.durations import Duration, time_text
from ottla.cli.output import show_rows, with_output_option
from ottla.cli.summaries import CommandGroup
from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from ottla.cli.connecting import Reach
    from ottla.client import Client
    from ottla.client.admin.tokens import DelegationToken

_COLUMNS: Final = ("id", "owner", "renewers", "expires", "max")


@click.group(cls=CommandGroup)
def token() -> None:
    """Create, renew, expire and list delegation tokens.

    A token logs in as its owner until it expires, with SCRAM: its id is the user name and its secret is the password.
    Brokers serve tokens if security.delegation_token_secret is set.
    """


@token.command(
    epilog="""\b
Examples:
  ottla token create --user ann
  ottla token create --renewer User:scheduler --max-lifetime 12h
  ottla token create --owner User:job -o json
""",
)
@click.option("--owner", metavar="PRINCIPAL", help="Owner, such as User:job; needs CREATE_TOKENS on it [default: you].")
@click.option("--renewer", "renewers", multiple=True, metavar="PRINCIPAL", help="Who else may renew it; repeatable.")
@click.option("--max-lifetime", type=Duration(), help="Longest life, however often renewed [default: the broker's].")
@with_output_option
@with_broker_options
def create(
    owner: str | None,
    renewers: tuple[str, ...],
    max_lifetime: float | None,
    *,
    output: str,
    reach: Reach,
) -> None:
    """Create a delegation token and print its secret."""
    lifetime_ms = _milliseconds(max_lifetime)

    async def ask(client: Client) -> DelegationToken:
        try:
            return await client.admin.create_token(owner=owner, renewers=renewers, max_lifetime_ms=lifetime_ms)
        except ValueError as wrong:
            raise OttlaError(str(wrong)) from None

    made = reach.run(ask)
    row = {**_row(made), "secret": made.secret}
    if output == "json":
        show_rows([row], tuple(row), output)
    else:
        for name, value in row.items():
            click.echo(f"{name + ':':10}{', '.join(value) if isinstance(value, list) else value}")


@token.command(
    "list",
    epilog="""\b
Examples:
  ottla token list
  ottla token list --owner User:job -o json
""",
)
@click.option("--owner", "owners", multiple=True, metavar="PRINCIPAL", help="Only tokens of this owner; repeatable.")
@with_output_option
@with_broker_options
def list_tokens(owners: tuple[str, ...], *, output: str, reach: Reach) -> None:
    """List the delegation tokens that you may see."""
    rows = [_row(each) for each in reach.run(lambda client: client.admin.list_tokens(owners or None))]
    if output == "table":
        rows = [{**row, "renewers": ", ".join(row["renewers"])} for row in rows]
    show_rows(rows, _COLUMNS, output)


@token.command(
    epilog="""\b
Examples:
  ottla token renew Jx0f3cVjQHa4bqV1g7M2nA
  ottla token renew Jx0f3cVjQHa4bqV1g7M2nA --for 12h
""",
)
@click.argument("token_id", metavar="ID")
@click.option("--for", "period", type=Duration(), help="How long from now [default: the broker's period].")
@with_broker_options
def renew(token_id: str, *, period: float | None, reach: Reach) -> None:
    """Renew a delegation token."""

    async def ask(client: Client) -> int:
        return await client.admin.renew_token((await _found(client, token_id)).hmac, _milliseconds(period))

    click.echo(f"token {token_id} expires {time_text(reach.run(ask))}")


@token.command(
    epilog="""\b
Examples:
  ottla token expire Jx0f3cVjQHa4bqV1g7M2nA
  ottla token expire Jx0f3cVjQHa4bqV1g7M2nA --in 1h
""",
)
@click.argument("token_id", metavar="ID")
@click.option("--in", "period", type=Duration(), help="After this time [default: now].")
@with_broker_options
def expire(token_id: str, *, period: float | None, reach: Reach) -> None:
    """Delete a delegation token, or let it expire earlier or later."""

    async def ask(client: Client) -> int:
        return await client.admin.expire_token((await _found(client, token_id)).hmac, _milliseconds(period))

    expires_ms = reach.run(ask)
    click.echo(f"token {token_id} deleted" if period is None else f"token {token_id} expires {time_text(expires_ms)}")


async def _found(client: Client, token_id: str) -> DelegationToken:
    for each in await client.admin.list_tokens():
        if each.id == token_id:
            return each
    raise OttlaError(f"no delegation token {token_id} that you may see; ottla token list shows all")


def _row(found: DelegationToken) -> dict[str, Any]:
    return {
        "id": found.id,
        "owner": found.owner,
        "renewers": list(found.renewers),
        "expires": time_text(found.expires_ms),
        "max": time_text(found.max_ms),
    }


def _milliseconds(seconds: float | None) -> int:
    """As Kafka's requests have it: -1 for the broker's default."""
    return -1 if seconds is None else int(seconds * 1000)
