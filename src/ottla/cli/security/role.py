"""`ottla role`: named sets of ACLs, and who has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from ottla.cli.confirming import confirm, with_yes_option
from ottla.cli.connecting import with_broker_options
from ottla.cli.output import show_rows, with_output_option
from ottla.cli.security.acl import add_acls, sentence
from ottla.cli.summaries import CommandGroup
from ottla.client.admin.acls import Acl, AclFilter
from ottla.core.errors import OttlaError
from ottla.core.security import ROLE_TYPE, AclOperation, PatternType, ResourceType
from ottla.event_loop import run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.cli.connecting import Reach
    from ottla.client.client import Client

_COLUMNS: Final = ("role", "members", "rights")


@click.group(cls=CommandGroup)
def role() -> None:
    """List roles, and change who has them.

    A role is a named set of ACLs. `ottla acl add Role:NAME …` gives the role its rights; users, groups that tokens name
    and other roles are members. Only Ottla's authorizer evaluates roles, Apache Kafka's ignores them.
    """


@role.command(
    "list",
    epilog="""\b
Examples:
  ottla role list
  ottla role list -o json
""",
)
@with_output_option
@with_broker_options
def list_roles(*, reach: Reach, output: str) -> None:
    """List roles with their members and rights."""
    acls = run(_list(reach, AclFilter()))
    rows: list[dict[str, object]] = []
    for name in sorted(_names(acls)):
        members = [one.principal for one in acls if _is_membership(one, name)]
        rights = [sentence(one) for one in acls if one.principal == ROLE_TYPE + name]
        if output == "json":
            rows.append({"role": name, "members": members, "rights": rights})
        else:
            rows.append({"role": name, "members": ", ".join(members), "rights": len(rights)})
    show_rows(rows, _COLUMNS, output)


@role.command(
    epilog="""\b
Examples:
  ottla acl add Role:analyst --consumer --topic orders --group 'reports-' --prefixed
  ottla role grant analyst User:ann Group:data-science
""",
)
@click.argument("role_name", metavar="ROLE")
@click.argument("principals", metavar="PRINCIPAL…", nargs=-1, required=True)
@with_broker_options
def grant(role_name: str, principals: tuple[str, ...], *, reach: Reach) -> None:
    """Make principals members of a role."""
    wanted = [_membership(role_name, principal) for principal in principals]

    async def ask(client: Client) -> None:
        await add_acls(client, wanted, lambda one: f"granted role {role_name} to {one.principal}")
        if not await client.admin.list_acls(AclFilter(principal=ROLE_TYPE + role_name)):
            click.echo(f"role {role_name} has no rights yet; run: ottla acl add Role:{role_name} …", err=True)

    reach.run(ask)


@role.command(
    epilog="""\b
Examples:
  ottla role revoke analyst User:ann
""",
)
@click.argument("role_name", metavar="ROLE")
@click.argument("principals", metavar="PRINCIPAL…", nargs=-1, required=True)
@with_broker_options
def revoke(role_name: str, principals: tuple[str, ...], *, reach: Reach) -> None:
    """Take a role away from principals."""
    filters = [_memberships(role_name, principal) for principal in principals]
    for principal, gone in zip(principals, run(_delete(reach, filters)), strict=True):
        if not gone:
            raise OttlaError(f"{principal} does not have the role {role_name}; ottla role list shows who has")
        click.echo(f"revoked role {role_name} from {principal}")


@role.command(
    epilog="""\b
Examples:
  ottla role delete analyst --yes
""",
)
@click.argument("role_name", metavar="ROLE")
@with_yes_option
@with_broker_options
def delete(role_name: str, *, reach: Reach, yes: bool) -> None:
    """Delete a role: its rights and its memberships."""
    of_it = AclFilter(principal=ROLE_TYPE + role_name), _memberships(role_name, None)
    found = [one for wanted in of_it for one in run(_list(reach, wanted))]
    if not found:
        raise OttlaError(f"there is no role {role_name}; ottla role list shows all roles")
    click.echo("\n".join(map(sentence, found)), err=True)
    confirm(f"Delete the role {role_name}, {len(found)} ACLs, at {reach.servers}?", yes=yes)
    run(_delete(reach, of_it))
    click.echo(f"deleted role {role_name}")


async def _list(reach: Reach, wanted: AclFilter) -> list[Acl]:
    async with reach.client() as client:
        return await client.admin.list_acls(wanted)


async def _delete(reach: Reach, filters: Iterable[AclFilter]) -> list[list[Acl]]:
    async with reach.client() as client:
        return [await client.admin.delete_acls(wanted) for wanted in filters]


def _names(acls: Iterable[Acl]) -> set[str]:
    given = {one.principal for one in acls} | {one.resource_name for one in acls if _is_about_role(one)}
    return {name.removeprefix(ROLE_TYPE) for name in given if name.startswith(ROLE_TYPE)}


def _is_about_role(one: Acl) -> bool:
    return one.resource_type is ResourceType.USER and one.pattern_type is PatternType.LITERAL


def _is_membership(one: Acl, name: str) -> bool:
    return _is_about_role(one) and one.operation is AclOperation.ALL and one.resource_name == ROLE_TYPE + name


def _membership(name: str, principal: str) -> Acl:
    if ":" not in principal:
        raise OttlaError(f"a principal has a type and a name, such as User:{principal}, got {principal!r}")
    return Acl(principal, AclOperation.ALL, ResourceType.USER, ROLE_TYPE + name)


def _memberships(name: str, principal: str | None) -> AclFilter:
    return AclFilter(
        principal=principal,
        operation=AclOperation.ALL,
        resource_type=ResourceType.USER,
        resource_name=ROLE_TYPE + name,
        pattern_type=PatternType.LITERAL,
    )
