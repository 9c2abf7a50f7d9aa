"""The OpenAPI 3.1 description of the registry, from the table of its paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ottla import __version__
from ottla.http.registry_config import REGISTRY_MEDIA_TYPE as MEDIA_TYPE
from ottla.registry.associations import KINDS, LIFECYCLES
from ottla.registry.model import LEVELS, MODES, TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.http.registry.served import Served

Json = dict[str, Any]

_TEXT: Final[Json] = {"type": "string"}
_WHOLE: Final[Json] = {"type": "integer"}
_REFERENCE: Final[Json] = {
    "type": "object",
    "required": ["name", "subject", "version"],
    "properties": {"name": _TEXT, "subject": _TEXT, "version": _WHOLE},
}
_NEW: Final[Json] = {
    "schema": _TEXT,
    "schemaType": {"enum": list(TYPES)},
    "references": {"type": "array", "items": _REFERENCE},
    "metadata": {"type": "object"},
    "ruleSet": {"type": "object"},
}
_ENTITY: Final[Json] = _NEW | {"id": _WHOLE, "guid": _TEXT, "version": _WHOLE, "subject": _TEXT, "maxId": _WHOLE}
_LEVEL: Final[Json] = {"enum": list(LEVELS)}


def _associations(more: Json) -> Json:
    return {"type": "array", "items": {"type": "object", "properties": _ASSOCIATION | more}}


_RESOURCE: Final[Json] = {
    "resourceName": _TEXT,
    "resourceNamespace": _TEXT,
    "resourceId": _TEXT,
    "resourceType": _TEXT,
}
_ASSOCIATION: Final[Json] = {
    "subject": _TEXT,
    "associationType": {"enum": list(KINDS)},
    "lifecycle": {"enum": list(LIFECYCLES)},
    "frozen": {"type": "boolean"},
}
_SCHEMAS: Final[Json] = {
    "Error": {
        "type": "object",
        "required": ["error_code", "message"],
        "properties": {"error_code": _WHOLE, "message": _TEXT},
    },
    "NewSchema": {"type": "object", "required": ["schema"], "properties": _NEW},
    "Schema": {"type": "object", "properties": _ENTITY},
    "Schemas": {"type": "array", "items": {"type": "object", "properties": _ENTITY}},
    "Names": {"type": "array", "items": _TEXT},
    "Numbers": {"type": "array", "items": _WHOLE},
    "Number": _WHOLE,
    "Places": {"type": "array", "items": {"type": "object", "properties": {"subject": _TEXT, "version": _WHOLE}}},
    "Check": {
        "type": "object",
        "required": ["is_compatible"],
        "properties": {"is_compatible": {"type": "boolean"}, "messages": {"type": "array", "items": _TEXT}},
    },
    "Config": {"type": "object", "properties": {"compatibility": _LEVEL, "compatibilityLevel": _LEVEL}},
    "Associations": {"type": "array", "items": {"type": "object", "properties": _RESOURCE | _ASSOCIATION}},
    "NewAssociations": {
        "type": "object",
        "required": ["resourceName", "resourceNamespace", "associations"],
        "properties": _RESOURCE | {"associations": _associations({"schema": {"type": "object"}})},
    },
    "ResourceAssociations": {
        "type": "object",
        "properties": _RESOURCE | {"associations": _associations({"schema": {"type": "object"}})},
    },
    "AssociationRequests": {
        "type": "object",
        "required": ["requests"],
        "properties": {"requests": {"type": "array", "items": {"type": "object", "properties": _RESOURCE}}},
    },
    "AssociationResults": {
        "type": "object",
        "properties": {"results": {"type": "array", "items": {"type": "object"}}},
    },
    "Mode": {"type": "object", "properties": {"mode": {"enum": list(MODES)}}},
}
_FLAGS: Final = frozenset(
    {
        "normalize",
        "verbose",
        "deleted",
        "deletedOnly",
        "permanent",
        "force",
        "defaultToGlobal",
        "latestOnly",
        "fetchMaxId",
        "recursive",
        "aliases",
        "deletedAsNegative",
        "dryRun",
        "cascadeLifecycle",
        "includeSchemas",
    }
)
_STATUSES: Final = {
    ("DELETE", "/contexts/{context}"): "204",
    ("DELETE", "/associations/resources/{resourceId}"): "204",
    ("POST", "/associations:batchGet"): "207",
    ("POST", "/associations:batchMutate"): "207",
}
_NUMBERS: Final = frozenset({"offset", "limit"})


def describe(served: Iterable[Served]) -> Json:
    paths: dict[str, Json] = {}
    for each in served:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    info = {"title": "Schema registry", "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": _SCHEMAS}}


def _operation(served: Served) -> Json:
    codes = ", ".join(str(each) for each in served.codes)
    in_path = (
        {"name": name, "in": "path", "required": True, "schema": _TEXT} for name in re.findall(r"{(\w+)}", served.path)
    )
    in_query = ({"name": name, "in": "query", "schema": _kind(name)} for name in served.parameters)
    answer = {"$ref": f"#/components/schemas/{served.answer}"} if served.answer else {}
    done = _STATUSES.get((served.method, served.path), "200")
    content = {} if done == "204" else {"content": {MEDIA_TYPE: {"schema": answer}}}
    error = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}}
    described: Json = {
        "summary": served.summary,
        "parameters": [*in_path, *in_query],
        "responses": {
            done: {"description": served.summary, **content},
            "default": {"description": f"Error codes: {codes}" if codes else "An error", "content": error},
        },
    }
    if served.body:
        body = {"schema": {"$ref": f"#/components/schemas/{served.body}"}}
        described["requestBody"] = {"required": True, "content": {MEDIA_TYPE: body, "application/json": body}}
    return described


def _kind(name: str) -> Json:
    if name in _FLAGS:
        return {"type": "boolean"}
    return {"type": "integer"} if name in _NUMBERS else _TEXT
