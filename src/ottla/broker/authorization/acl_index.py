"""ACL evaluation by the rules of Kafka's StandardAuthorizer. Pure.

DENY takes precedence over ALLOW. READ, WRITE, DELETE and ALTER imply DESCRIBE.

Roles are an extension of Kafka: an ACL of the principal `Role:analyst` applies to every member of that role. Membership
is itself an ACL, ALLOW ALL on the USER resource `Role:analyst`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.security import ROLE_TYPE
from ottla.storage.catalog.acl_filter import WILDCARD
from ottla.storage.catalog.entries import AclOperation, AclPermission, PatternType, ResourceType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ottla.storage.catalog.entries import Acl

EVERYBODY: Final = "User:*"

_IMPLYING: Final = {
    AclOperation.DESCRIBE: frozenset(
        {
            AclOperation.DESCRIBE,
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        }
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}),
}
"""The operations that each operation implies."""


class Requester(NamedTuple):
    principals: frozenset[str]
    """The client's principal, its groups and its roles."""
    host: str


class AclIndex:
    """ACLs, indexed by resource so that the ACLs matching a name are found quickly."""

    def __init__(self, acls: Collection[Acl], *, is_open_without: bool = False) -> None:
        """`is_open_without`: allow access to resources without ACLs."""
        self._is_open_without = is_open_without
        self._literal: dict[tuple[ResourceType, str], list[Acl]] = {}
        self._prefixed: dict[ResourceType, dict[str, list[Acl]]] = {}
        for acl in acls:
            if acl.pattern_type is PatternType.PREFIXED:
                self._prefixed.setdefault(acl.resource_type, {}).setdefault(acl.resource_name, []).append(acl)
            else:
                self._literal.setdefault((acl.resource_type, acl.resource_name), []).append(acl)
        self._roles = frozenset(acl.principal for acl in acls if acl.principal.startswith(ROLE_TYPE))
        self._lengths = {
            kind: sorted({len(prefix) for prefix in by_prefix}) for kind, by_prefix in self._prefixed.items()
        }

    def requester(self, principals: Iterable[str], host: str) -> Requester:
        """Resolve a client: its principals, their roles, and the roles of those roles."""
        requester = Requester(frozenset(principals), host)
        while self._roles:
            joined = {
                role for role in self._roles if role not in requester.principals and self._is_member(requester, role)
            }
            if not joined:
                break
            requester = requester._replace(principals=requester.principals | joined)
        return requester

    def _is_member(self, requester: Requester, role: str) -> bool:
        # Not `allows`: with `is_open_without`, a role without members must not include everyone.
        bearing = [acl for acl in self._bearing_on(ResourceType.USER, role) if _makes_member(acl, requester)]
        return bool(bearing) and all(acl.permission is AclPermission.ALLOW for acl in bearing)

    def allows(self, requester: Requester, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        has_any = is_allowed = False
        for acl in self._bearing_on(kind, name):
            has_any = True
            if _is_about(acl, requester) and _covers(acl, operation):
                if acl.permission is AclPermission.DENY:
                    return False
                is_allowed = True
        return is_allowed or (not has_any and self._is_open_without)

    def allows_some(self, requester: Requester, operation: AclOperation, kind: ResourceType) -> bool:
        """Whether the operation is allowed on any resource of this type (KIP-679)."""
        patterns = [acl for acl in self._all_of(kind) if _is_about(acl, requester) and _covers(acl, operation)]
        denied = [acl for acl in patterns if acl.permission is AclPermission.DENY]
        if any(_contains(WILDCARD, PatternType.LITERAL, acl) for acl in denied):
            return False
        allowed = [acl for acl in patterns if acl.permission is AclPermission.ALLOW]
        if any(not any(_dominates(no, yes) for no in denied) for yes in allowed):
            return True
        return self._is_open_without

    def _bearing_on(self, kind: ResourceType, name: str) -> Iterator[Acl]:
        yield from self._literal.get((kind, name), ())
        if name != WILDCARD:
            yield from self._literal.get((kind, WILDCARD), ())
        by_prefix = self._prefixed.get(kind)
        if by_prefix:
            for length in self._lengths[kind]:
                if length > len(name):
                    break
                yield from by_prefix.get(name[:length], ())

    def _all_of(self, kind: ResourceType) -> Iterator[Acl]:
        for (of, _), acls in self._literal.items():
            if of is kind:
                yield from acls
        for acls in self._prefixed.get(kind, {}).values():
            yield from acls


def _is_about(acl: Acl, requester: Requester) -> bool:
    return (acl.principal in requester.principals or acl.principal == EVERYBODY) and acl.host in (
        requester.host,
        WILDCARD,
    )


def _makes_member(acl: Acl, requester: Requester) -> bool:
    return acl.operation is AclOperation.ALL and _is_about(acl, requester)


def _covers(acl: Acl, operation: AclOperation) -> bool:
    if acl.operation in (AclOperation.ALL, operation):
        return True
    # Only ALLOW implies other operations: denying READ does not deny DESCRIBE.
    return acl.permission is AclPermission.ALLOW and acl.operation in _IMPLYING.get(operation, ())


def _contains(name: str, pattern: PatternType, acl: Acl) -> bool:
    return acl.resource_name == name and acl.pattern_type is pattern


def _dominates(no: Acl, yes: Acl) -> bool:
    """Whether the denial `no` covers everything that `yes` allows."""
    if no.pattern_type is PatternType.PREFIXED:
        return yes.resource_name.startswith(no.resource_name)
    return yes.pattern_type is PatternType.LITERAL and yes.resource_name == no.resource_name
