"""Filters of ACLs, like Kafka's ResourcePatternFilter and AccessControlEntryFilter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ottla.storage.catalog.entries import Acl, AclOperation, AclPermission, PatternType, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

WILDCARD: Final = "*"


class AclFilter(Struct, frozen=True, kw_only=True):
    """None and ANY match any value; an empty filter matches every ACL."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    """MATCH finds every ACL that applies to the resource of that name: literal, prefixed and wildcard."""
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    @property
    def is_unknown(self) -> bool:
        """Whether the filter has an unknown code, so that it cannot be evaluated."""
        return 0 in (self.resource_type, self.pattern_type, self.operation, self.permission)


def matching(acls: Iterable[Acl], wanted: AclFilter) -> frozenset[Acl]:
    return frozenset(acl for acl in acls if matches(wanted, acl))


def matches(wanted: AclFilter, acl: Acl) -> bool:
    return (
        wanted.resource_type in (ResourceType.ANY, acl.resource_type)
        and wanted.pattern_type in (PatternType.ANY, PatternType.MATCH, acl.pattern_type)
        and _name_matches(wanted, acl)
        and wanted.principal in (None, acl.principal)
        and wanted.host in (None, acl.host)
        and wanted.operation in (AclOperation.ANY, acl.operation)
        and wanted.permission in (AclPermission.ANY, acl.permission)
    )


def _name_matches(wanted: AclFilter, acl: Acl) -> bool:
    if wanted.resource_name is None:
        return True
    if wanted.pattern_type is not PatternType.MATCH:
        return wanted.resource_name == acl.resource_name
    if acl.pattern_type is PatternType.PREFIXED:
        return wanted.resource_name.startswith(acl.resource_name)
    return acl.resource_name in (wanted.resource_name, WILDCARD)
