"""The record of a served API."""

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
    """The required permissions, with ACLs enabled."""
    forward: Callable[[], ForwardingRule] | None = None
    """The node that processes in-process requests in a cluster; by default this one."""
    audit: Literal["change", "read"] | None = None
    """Whether its requests are audited; reads only with `security.audit_reads`."""
    by_topic: tuple[str, str] | None = None
    """The fields of its topics in the request, and of one result each in the response: such a request can fail in
    part. Others fail as a whole."""
    waits_for_cluster: bool = False
    """Not answered while a starting node does not know its cluster yet."""

    def load_handler(self) -> Handler:
        function = self.handler()
        _, request, *_ = function.__annotations__.values()
        named = request if isinstance(request, str) else request.__name__
        if named.rpartition(".")[2] != f"{self.api.name}Request":
            raise TypeError(f"{function.__qualname__} handles {request}, but is declared for {self.api}")
        return normalized(function)
