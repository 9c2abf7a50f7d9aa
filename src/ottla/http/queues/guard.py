"""Authorization of queues over HTTP: for ACLs, a queue is a topic of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from ottla.broker.interfaces.in_process_requests import LocalClient, Refused
from ottla.core.security import CLUSTER_NAME, AclOperation, ResourceType
from ottla.http.framework.endpoints import IDENTITY, Identity
from ottla.http.framework.problems import problem_of, problem_response
from ottla.http.queues.handlers import PREFIX

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ottla.http.framework.endpoints import HttpState

_QUEUE_ALONE: Final = {"GET": AclOperation.DESCRIBE, "HEAD": AclOperation.DESCRIBE, "DELETE": AclOperation.DELETE}


def guarded(queues: ASGIApp, http_state: HttpState) -> ASGIApp:
    """Wrap the queues; returned unchanged without ACLs, or if queues have their own users."""
    if http_state.broker.security.authorizer is None or http_state.queues_ask:
        return queues

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        client = _client(http_state, scope)
        try:
            client.check(*_needed(scope["method"], scope["path"]))
        except Refused as refused:
            await problem_response(problem_of(refused))(scope, receive, send)
        else:
            await queues(scope, receive, send)

    return app


def noted(http_state: HttpState, request: Request, action: str, name: str) -> None:
    """Write a change to the audit log, if there is one."""
    audit = http_state.broker.security.audit
    if audit is not None:
        audit.noted(_client(http_state, request.scope), action, (name,))


def _client(http_state: HttpState, scope: Scope) -> LocalClient:
    host, port = scope.get("client") or ("?", 0)
    return LocalClient(http_state.broker, "queues", (host, port), *scope.get(IDENTITY, Identity()))


def _needed(method: str, path: str) -> tuple[AclOperation, ResourceType, str]:
    name, _, below = path.removeprefix(PREFIX).removeprefix("/").partition("/")
    if not name:
        operation = AclOperation.CREATE if method == "POST" else AclOperation.DESCRIBE
        return operation, ResourceType.CLUSTER, CLUSTER_NAME
    if not below:
        operation = _QUEUE_ALONE.get(method, AclOperation.ALTER)
    elif below == "messages":
        operation = AclOperation.WRITE
    else:
        operation = AclOperation.READ
    return operation, ResourceType.TOPIC, unquote(name, errors="replace")
