"""One request to the registry: its parameters, its body, and the permissions of its sender."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from ottla.core.security import CLUSTER_NAME, AclOperation, ResourceType
from ottla.http.framework.endpoints import Call, Endpoint
from ottla.registry import refusals
from ottla.registry.errors import Refusal
from ottla.registry.given import schema_in
from ottla.registry.subjects import ALL_CONTEXTS, DEFAULT_CONTEXT, beside, in_context, parse_subject, qualified

if TYPE_CHECKING:
    from starlette.requests import Request

    from ottla.broker.schemas.store import Store
    from ottla.http.framework.endpoints import HttpState
    from ottla.registry.model import Json, Schema, Version
    from ottla.registry.state import State

SUBJECT_RESOURCE: Final = "_schemas:"
"""A subject's ACLs are those of the TOPIC resource with this prefix: no topic can have such a name."""
_LATEST: Final = ("latest", "-1")
_LARGEST_VERSION: Final = (1 << 31) - 1
_FORBIDDEN_NAMES: Final = ("__GLOBAL", "__EMPTY")


class RegistryCall:
    def __init__(self, request: Request, http_state: HttpState, endpoint: Endpoint, store: Store, context: str) -> None:
        self._call = Call(request, http_state, endpoint)
        self._request = request
        self.store = store
        self.broker = http_state.broker
        self.context = context
        """The context of a request below `/contexts/{context}`; empty for others."""
        self.note = self._call.note

    @property
    def state(self) -> State:
        return self.store.state

    # Parameters

    def path(self, name: str) -> str:
        text: str = self._request.path_params[name]
        try:
            return unquote(text, errors="strict")
        except UnicodeDecodeError:
            raise Refusal(400, f"{name} is not UTF-8") from None

    def text(self, name: str, default: str = "") -> str:
        return self._request.query_params.get(name, default)

    def query_pairs(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, value in self._request.query_params.multi_items():
            found.setdefault(name, []).append(value)
        return found

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def number(self, name: str, default: int) -> int:
        given = self.text(name)
        try:
            return int(given) if given else default
        except ValueError:
            raise Refusal(400, f"{name} must be an integer, got {given!r}") from None

    def page(self, found: list[Any]) -> list[Any]:
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return found[offset:] if limit < 0 else found[offset : offset + limit]

    def subject(self) -> str:
        """The qualified subject; resolved if it is an alias."""
        given = self.path("subject")
        name = in_context(self.context, given) if self.context else qualified(given)
        plain = parse_subject(name).name
        if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in name) or plain in _FORBIDDEN_NAMES:
            raise refusals.invalid_subject(given)
        alias = (self.state.config(name) or {}).get("alias")
        return beside(name, alias) if alias else name

    def setting_subject(self) -> str | None:
        """The subject of a config or mode; None is the global one."""
        given = self.path("subject")
        if given in (":.:", ""):
            return None
        return in_context(self.context, given) if self.context else qualified(given)

    def top_subject(self) -> str | None:
        """The subject that stands for the whole context of the request."""
        return in_context(self.context, "") if self.context else None

    def prefix(self) -> str:
        if self.context:
            return in_context(self.context, self.text("subjectPrefix"))
        return self.text("subjectPrefix", ALL_CONTEXTS)

    def version(self) -> int:
        """The requested version; -1 is the latest."""
        given = self.path("version")
        if given in _LATEST:
            return -1
        if not given.isascii() or not given.isdecimal() or not 1 <= int(given[:20]) <= _LARGEST_VERSION:
            raise refusals.invalid_version(given)
        return int(given)

    def id(self) -> int:
        given = self.path("id")
        if not given.isascii() or not given.isdecimal() or int(given[:20]) > _LARGEST_VERSION:
            raise Refusal(404, "HTTP 404 Not Found")
        return int(given)

    def contexts_to_search(self) -> list[str]:
        """Where to search for an id: in the context of the request, or of its subject; otherwise in the default one and
        then all others.
        """
        given = self.text("subject")
        if self.context:
            return [parse_subject(in_context(self.context, "")).context]
        named = parse_subject(given).context
        if named != DEFAULT_CONTEXT:
            return [named]
        others = [each for each in self.state.contexts() if each != DEFAULT_CONTEXT]
        return [DEFAULT_CONTEXT, *others] if given else [DEFAULT_CONTEXT]

    # The body

    async def json(self) -> Json:
        limit = self._call.http_state.config.max_body_bytes
        with self._call.receive(limit) as body:
            content = await body.read_all(limit)
        try:
            given = json.loads(content)
        except (ValueError, RecursionError):
            raise Refusal(400, "the body is not valid JSON") from None
        if not isinstance(given, dict):
            raise Refusal(400, "the body must be a JSON object")
        return given

    async def schema(self) -> tuple[Schema, Json]:
        """The schema in a request, and the other fields."""
        given = await self.json()
        return schema_in(given), given

    # Rights

    def check(self, operation: AclOperation, subject: str) -> None:
        self._call.check(operation, ResourceType.TOPIC, SUBJECT_RESOURCE + subject)

    def may(self, operation: AclOperation, subject: str) -> bool:
        return self._call.may(operation, ResourceType.TOPIC, SUBJECT_RESOURCE + subject)

    def check_references(self, subject: str, schema: Schema) -> None:
        """A user who may not read a schema must not get its text through one that references it."""
        for each in schema.references:
            self.check(AclOperation.READ, beside(subject, each.subject))

    def check_setting(self, operation: AclOperation, subject: str | None) -> None:
        if subject is None:
            self._call.check(operation, ResourceType.CLUSTER, CLUSTER_NAME)
        else:
            self.check(operation, subject)

    def readable(self, versions: list[Version]) -> list[Version]:
        return [each for each in versions if self.may(AclOperation.READ, each.subject)]
