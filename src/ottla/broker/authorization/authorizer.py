"""Authorization decisions per client, cached until an ACL changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.authorization.acl_index import AclIndex
from ottla.core.security import CLUSTER_NAME
from ottla.storage.catalog.entries import AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ottla.broker.authorization.acl_index import Requester
    from ottla.broker.requests.context import Client, Context
    from ottla.broker.security.audit import Audit
    from ottla.net.security_config import SecurityConfig
    from ottla.storage.catalog.entries import Acl

_MOST_REMEMBERED: Final = 100_000
_LONGEST_REMEMBERED: Final = 255
_KIND_BITS: Final = 4


class Authorizer:
    def __init__(self, config: SecurityConfig, acls: Callable[[], frozenset[Acl]], audit: Audit | None = None) -> None:
        self._super_users = frozenset(config.super_users)
        self._is_open_without = config.allow_everyone_if_no_acl
        self._acls = acls
        self._audit = audit
        self._indexed: frozenset[Acl] | None = None
        self._index = AclIndex(())
        self._known: dict[tuple[str, str, tuple[str, ...], str, int], bool] = {}

    def is_allowed(self, context: Context, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Whether this client is allowed the operation, without an audit line."""
        client = context.connection
        acls = self._acls()
        if acls is not self._indexed:
            self._reindex(acls)
        # One number for both: the hash of an enum member is computed in Python.
        key = name, client.principal, client.groups, client.peer[0], operation << _KIND_BITS | kind
        answer = self._known.get(key)
        if answer is None:
            answer = self._decide(self._requester(client), operation, kind, name)
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            # Longer names are not valid, and would only take memory.
            if len(name) <= _LONGEST_REMEMBERED:
                self._known[key] = answer
        return answer

    def check(self, context: Context, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Whether this client is allowed the operation. A denial is audited."""
        if self.is_allowed(context, operation, kind, name):
            return True
        self.note_denied(context, operation, kind, (name,))
        return False

    def note_denied(self, context: Context, operation: AclOperation, kind: ResourceType, names: Sequence[str]) -> None:
        """Write one audit line for all of these denials."""
        if self._audit is not None and names:
            self._audit.denied(context, operation.name, kind.name, names)

    def check_cluster(self, context: Context, operation: AclOperation) -> bool:
        return self.check(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_see(self, context: Context, topic: str | None) -> bool:
        """Whether this client may describe the topic."""
        return self.is_allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, topic or "")

    def may_write_somewhere(self, context: Context) -> bool:
        """Whether this client may write to any topic."""
        acls = self._acls()
        if acls is not self._indexed:
            self._reindex(acls)
        requester = self._requester(context.connection)
        return self._is_super(requester) or self._index.allows_some(requester, AclOperation.WRITE, ResourceType.TOPIC)

    def bits(self, context: Context, kind: ResourceType, name: str, among: Iterable[AclOperation]) -> int:
        """The operations that this client is allowed, as a bit field."""
        return sum(1 << one for one in among if self.is_allowed(context, one, kind, name))

    def _decide(self, requester: Requester, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        return self._is_super(requester) or self._index.allows(requester, operation, kind, name)

    def _requester(self, client: Client) -> Requester:
        return self._index.requester((client.principal, *client.groups), client.peer[0])

    def _is_super(self, requester: Requester) -> bool:
        return not self._super_users.isdisjoint(requester.principals)

    def _reindex(self, acls: frozenset[Acl]) -> None:
        self._index = AclIndex(acls, is_open_without=self._is_open_without)
        self._known.clear()
        self._indexed = acls
