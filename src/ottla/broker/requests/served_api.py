"""What the broker has to know of an API that it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from ottla.broker.requests.answers import normalized

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.authorization.rules import Rule
    from ottla.broker.peers.forwarding import ForwardingRule
    from ottla.broker.requests.answers import Handler
    from ottla.wire.apis import Api


class ServedApi(Struct, frozen=True):
    api: Api
    handler: Callable[[], Callable[..., Any]]
    rule: Rule
    """What a client must be allowed, where ACLs are on."""
    forward: Callable[[], ForwardingRule] | None = None
    """Where a request from inside the process is answered in a cluster; without it, on this node."""
    audit: Literal["change", "read"] | None = None
    """Whether the audit log has its requests; reads only with `security.audit_reads`."""
    waits_for_cluster: bool = False
    """Not answered before a node that starts knows its cluster."""

    def load_handler(self) -> Handler:
        function = self.handler()
        _, request, *_ = function.__annotations__.values()
        named = request if isinstance(request, str) else request.__name__
        if named.rpartition(".")[2] != f"{self.api.name}Request":
            raise TypeError(f"{function.__qualname__} handles {request}, but is declared for {self.api}")
        return normalized(function)
