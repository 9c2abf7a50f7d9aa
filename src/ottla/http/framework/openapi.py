"""The OpenAPI 3.1 description, generated from the same declarations as the routes."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla import __version__
from ottla.core.config_docs import field_docs
from ottla.http.framework.endpoints import JSON, Endpoint
from ottla.http.framework.models import RequestStruct, Struct
from ottla.http.framework.problems import PROBLEM_TYPE, ProblemDetails

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from starlette.responses import Response

    from ottla.http.framework.endpoints import Call

Json = dict[str, Any]

_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_REF: Final = "#/components/schemas/{name}"


async def describe(call: Call) -> Response:
    # In a thread: the first call takes tens of milliseconds.
    content = await asyncio.get_running_loop().run_in_executor(None, document, call.http_state.endpoints)
    return call.tagged(content)


@cache
def document(endpoints: tuple[Endpoint, ...]) -> bytes:
    declared = (kind for one in endpoints for kind in (one.body, one.answer, one.refusal))
    structs = {kind for kind in declared if kind is not None} | {ProblemDetails}
    ordered = sorted(structs, key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(ordered, ref_template=_REF)
    for kind in _all_structs():
        _explain(schemas.get(kind.__name__, {}), kind)
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "Ottla",
            "version": __version__,
            "description": "A message broker: the same topics that Kafka clients read and write.",
        },
        "tags": [{"name": name, "description": described} for name, described in _TAGS.items()],
        "paths": paths,
        "components": {"schemas": schemas},
    }
    return msgspec.json.encode(whole)


def _all_structs() -> Iterator[type[msgspec.Struct]]:
    kinds: list[type[msgspec.Struct]] = [Struct, RequestStruct, ProblemDetails]
    for kind in kinds:
        yield kind
        kinds += kind.__subclasses__()


def _explain(schema: Json, kind: type[msgspec.Struct]) -> None:
    docs = field_docs(kind)
    for name, described in schema.get("properties", {}).items():
        if name in docs:
            described["description"] = docs[name]


_TAGS: Final = {
    "records": "Write and read messages",
    "topics": "Topics, their partitions and configs",
    "groups": "Consumer groups, their offsets and resets",
    "transactions": "Transactions",
    "pipelines": "Data pipelines",
    "dmqp": "Topics exposed over DMQP",
    "cluster": "The broker and its cluster",
    "monitoring": "Health, metrics and counters",
    "session": "Login of browsers",
    "users": "Users and passwords",
    "acls": "ACLs",
    "roles": "Roles",
    "faults": "Fault injection",
    "queues": "File queues",
    "rest_proxy": "Paths of Confluent's REST Proxy",
    "description": "This description",
}
"""Modules of generated clients."""

_TAGS_OF_PACKAGES: Final = {
    "records": "records",
    "consumer_groups": "groups",
    "monitoring": "monitoring",
    "login": "session",
    "queues": "queues",
    "framework": "description",
}


def _tag(endpoint: Endpoint) -> str:
    *_, package, module = endpoint.handle.__module__.split(".")
    return module if module in _TAGS else _TAGS_OF_PACKAGES.get(package, package)


def _operation(endpoint: Endpoint) -> Json:
    operation: Json = {
        "operationId": endpoint.handle.__module__.rpartition(".")[2] + "." + endpoint.handle.__name__,
        "tags": [_tag(endpoint)],
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint.path), *_query_parameters(endpoint.query)],
        "responses": {
            str(endpoint.status): {"description": endpoint.summary, "content": _answers(endpoint)},
            "default": {
                "description": "The error, and what to do about it",
                "content": _refusals(endpoint),
            },
        },
    }
    if endpoint.body is not None:
        content: Json = {JSON: {"schema": _ref(endpoint.body)}}
        if endpoint.takes:
            content[endpoint.takes] = {"schema": {"type": "string"}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _answers(endpoint: Endpoint) -> Json:
    answers: Json = {}
    if endpoint.answer is not None:
        answers[JSON] = {"schema": _ref(endpoint.answer)}
    if endpoint.streams:
        answers[endpoint.streams] = {"schema": {} if endpoint.streams == JSON else {"type": "string"}}
    return answers


def _refusals(endpoint: Endpoint) -> Json:
    if endpoint.refusal is not None:
        return {JSON: {"schema": _ref(endpoint.refusal)}}
    return {PROBLEM_TYPE: {"schema": _ref(ProblemDetails)}}


def _path_parameters(path: str) -> Iterable[Json]:
    for name in _PARAMETER.findall(path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _query_parameters(kind: type[msgspec.Struct] | None) -> Iterable[Json]:
    if kind is None:
        return
    schema = msgspec.json.schema(kind)
    properties = schema["$defs"][kind.__name__]["properties"]
    docs = field_docs(kind)
    for name, described in properties.items():
        yield {"name": name, "in": "query", "description": docs.get(name, ""), "schema": _without_null(described)}


def _without_null(schema: Json) -> Json:
    """A query parameter is omitted rather than null."""
    kept = {key: value for key, value in schema.items() if key not in ("default", "anyOf")}
    choices: list[Json] = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(choices) == 1:
        return kept | choices[0]
    if schema.get("default") is not None:
        kept["default"] = schema["default"]
    return kept


def _ref(kind: type[msgspec.Struct]) -> Json:
    return {"$ref": _REF.format(name=kind.__name__)}


ENDPOINTS: Final = (Endpoint("GET", "/v1/openapi.json", describe, "This description", streams=JSON),)
