"""`ottla acl`: access control lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.cli.confirming import confirm, with_yes_option
from ottla.cli.connecting import with_broker_options
from ottla.cli.output import show_rows, with_output_option
from ottla.cli.summaries import CommandGroup
from ottla.client.admin.acls import Acl, AclFilter
from ottla.core.errors import OttlaError
from ottla.core.security import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ottla.cli.connecting import Reach
    from ottla.client.client import Client

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")

_COLUMNS: Final = ("principal", "permission", "operation", "resource", "name", "pattern", "host")
_OPERATIONS: Final = {one.name.lower().replace("_", "-"): one for one in AclOperation if one > AclOperation.ANY}
_FOR_PRODUCERS: Final = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_FOR_CONSUMERS: Final = (AclOperation.READ, AclOperation.DESCRIBE)


@click.group(cls=CommandGroup)
def acl() -> None:
    """List, add and delete ACLs.

    With `security.acls`, users may do only what an ACL allows; a DENY overrides any ALLOW.
    """


def _with_resource_options(command: Decorated) -> Decorated:
    for option in (
        click.option("--prefixed", is_flag=True, help="Treat names as prefixes."),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option("--transactional-id", "transactional_ids", metavar="ID", multiple=True, help="May be repeated."),
        click.option("--group", "groups", metavar="NAME", multiple=True, help="May be repeated; * is all."),
        click.option("--topic", "topics", metavar="NAME", multiple=True, help="May be repeated; * is all."),
    ):
        command = option(command)
    return command


@acl.command(
    "list",
    epilog="""\b
Examples:
  ottla acl list
  ottla acl list --principal User:ann
  ottla acl list --topic orders -o json
""",
)
@click.option("--principal", metavar="User:NAME", help="Only ACLs of this principal.")
@_with_resource_options
@with_output_option
@with_broker_options
def list_acls(*, reach: Reach, principal: str | None, output: str, **options: Any) -> None:
    """List ACLs: all, or those that apply to the given resources."""
    filters = list(_filters(principal, options, PatternType.MATCH))

    async def ask(client: Client) -> list[Acl]:
        return sorted({one for wanted in filters for one in await client.admin.list_acls(wanted)})

    show_rows([_row(one) for one in reach.run(ask)], _COLUMNS, output)


@acl.command(
    epilog="""\b
Examples:
  ottla acl add User:ann --allow read --allow write --topic orders
  ottla acl add User:ann --consumer --topic orders --group billing
  ottla acl add User:bob --producer --topic logs- --prefixed
  ottla acl add User:eve --deny delete --topic orders
""",
)
@click.argument("principal", metavar="User:NAME")
@click.option(
    "--allow", type=click.Choice(list(_OPERATIONS)), multiple=True, help="Allow this operation; may be repeated."
)
@click.option(
    "--deny", type=click.Choice(list(_OPERATIONS)), multiple=True, help="Deny this operation; may be repeated."
)
@click.option("--producer", is_flag=True, help="Allow everything a producer of the topics needs.")
@click.option("--consumer", is_flag=True, help="Allow everything a consumer of the topics in the groups needs.")
@click.option("--host", metavar="ADDRESS", default="*", show_default=True, help="Only for clients at this address.")
@_with_resource_options
@with_broker_options
def add(principal: str, *, reach: Reach, **options: Any) -> None:
    """Add ACLs."""
    if ":" not in principal:
        raise OttlaError(f"a principal has a type and a name, such as User:ann, got {principal!r}")
    chosen = {name: options.pop(name) for name in ("allow", "deny", "producer", "consumer", "host")}
    resources = list(_resources(options))
    pattern = PatternType.PREFIXED if options.pop("prefixed") else PatternType.LITERAL
    wanted = list(_wanted(principal, chosen, resources, pattern))
    if not wanted:
        raise OttlaError(
            "nothing to add: give --allow, --deny, --producer or --consumer, and a resource such as --topic"
        )
    reach.run(lambda client: add_acls(client, wanted, lambda one: f"added: {sentence(one)}"))


@acl.command(
    epilog="""\b
Examples:
  ottla acl delete --principal User:ann
  ottla acl delete --topic orders --yes
""",
)
@click.option("--principal", metavar="User:NAME", help="Only ACLs of this principal.")
@_with_resource_options
@with_yes_option
@with_broker_options
def delete(*, reach: Reach, principal: str | None, yes: bool, **options: Any) -> None:
    """Delete the ACLs of a principal, or of exactly the given resources."""
    is_prefixed = options["prefixed"]
    filters = list(_filters(principal, options, PatternType.PREFIXED if is_prefixed else PatternType.LITERAL))
    if filters == [AclFilter()]:
        raise OttlaError("name the ACLs with --principal, --topic, --group, --transactional-id or --cluster")

    async def matching(client: Client) -> list[Acl]:
        return sorted({one for wanted in filters for one in await client.admin.list_acls(wanted)})

    async def deleted(client: Client) -> set[Acl]:
        return {one for wanted in filters for one in await client.admin.delete_acls(wanted)}

    found = reach.run(matching)
    if not found:
        click.echo("no ACL matches")
        return
    click.echo("\n".join(map(sentence, found)), err=True)
    confirm(f"Delete these {len(found)} at {reach.servers}?", yes=yes)
    click.echo(f"deleted: {len(reach.run(deleted))}")


def _resources(options: dict[str, Any]) -> Iterator[tuple[ResourceType, str]]:
    """Takes the options of `_with_resource_options` except `prefixed`."""
    for kind, name in (
        (ResourceType.TOPIC, "topics"),
        (ResourceType.GROUP, "groups"),
        (ResourceType.TRANSACTIONAL_ID, "transactional_ids"),
    ):
        yield from ((kind, each) for each in options.pop(name))
    if options.pop("cluster"):
        yield ResourceType.CLUSTER, CLUSTER_NAME


def _filters(principal: str | None, options: dict[str, Any], pattern: PatternType) -> Iterator[AclFilter]:
    resources = list(_resources(options))
    options.pop("prefixed")
    if not resources:
        yield AclFilter(principal=principal)
    for kind, name in resources:
        yield AclFilter(principal=principal, resource_type=kind, resource_name=name, pattern_type=pattern)


def _wanted(
    principal: str, chosen: dict[str, Any], resources: Iterable[tuple[ResourceType, str]], pattern: PatternType
) -> Iterator[Acl]:
    for kind, name in resources:
        allowed = [_OPERATIONS[one] for one in chosen["allow"]]
        if kind is ResourceType.TOPIC:
            allowed += [
                *(_FOR_PRODUCERS if chosen["producer"] else ()),
                *(_FOR_CONSUMERS if chosen["consumer"] else ()),
            ]
        if kind is ResourceType.GROUP and chosen["consumer"]:
            allowed.append(AclOperation.READ)
        # The cluster resource has one name, which cannot be a prefix.
        of_it = PatternType.LITERAL if kind is ResourceType.CLUSTER else pattern
        for operation in dict.fromkeys(allowed):
            yield Acl(principal, operation, kind, name, of_it, AclPermission.ALLOW, chosen["host"])
        for one in chosen["deny"]:
            yield Acl(principal, _OPERATIONS[one], kind, name, of_it, AclPermission.DENY, chosen["host"])


def _row(one: Acl) -> dict[str, object]:
    return {
        "principal": one.principal,
        "permission": one.permission.name.lower(),
        "operation": one.operation.name.lower().replace("_", "-"),
        "resource": one.resource_type.name.lower().replace("_", "-"),
        "name": one.resource_name,
        "pattern": one.pattern_type.name.lower(),
        "host": one.host,
    }


def sentence(one: Acl) -> str:
    row = _row(one)
    star = "*" if one.pattern_type is PatternType.PREFIXED else ""
    where = "" if one.host == "*" else f" from {one.host}"
    return (
        f"{row['permission']} {one.principal} to {row['operation']} {row['resource']} {one.resource_name}{star}{where}"
    )


async def add_acls(client: Client, wanted: Sequence[Acl], text_of: Callable[[Acl], str]) -> None:
    """Create ACLs and print each; stop at the first error."""
    for one, error in (await client.admin.create_acls(wanted)).items():
        if error is not None:
            raise error
        click.echo(text_of(one))
