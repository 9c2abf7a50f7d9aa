"""The OpenAPI 3.1 description of the catalog, from the table of its paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ottla import __version__
from ottla.http.iceberg_mount import ICEBERG_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.http.iceberg.served import Served

Json = dict[str, Any]

_TEXT: Final[Json] = {"type": "string"}
_LEVELS: Final[Json] = {"type": "array", "items": _TEXT}
_TOKEN: Final[Json] = {"type": ["string", "null"]}
_NAMES: Final[Json] = {"type": "object", "additionalProperties": _TEXT}
_IDENTIFIER: Final = {"type": "object", "properties": {"namespace": _LEVELS, "name": _TEXT}}


def _object(**properties: Json) -> Json:
    named = {name.replace("_", "-"): kind for name, kind in properties.items()}
    return {"type": "object", "required": list(named), "properties": named}


_SCHEMAS: Final[Json] = {
    "Error": _object(error=_object(message=_TEXT, type=_TEXT, code={"type": "integer"})),
    "Config": _object(defaults=_NAMES, overrides=_NAMES, endpoints=_LEVELS),
    "Namespaces": _object(namespaces={"type": "array", "items": _LEVELS}, next_page_token=_TOKEN),
    "Namespace": _object(namespace=_LEVELS, properties=_NAMES),
    "Identifiers": _object(identifiers={"type": "array", "items": _IDENTIFIER}, next_page_token=_TOKEN),
    "Table": _object(metadata_location=_TEXT, metadata={"type": "object"}, config=_NAMES),
    "Credentials": _object(storage_credentials={"type": "array"}),
}


def describe(served: Iterable[Served]) -> Json:
    paths: dict[str, Json] = {}
    for each in served:
        paths.setdefault(ICEBERG_PREFIX + each.path, {})[each.method.lower()] = _operation(each)
    info = {"title": "Iceberg REST catalog of topics", "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": _SCHEMAS}}


def _operation(served: Served) -> Json:
    in_path = [_parameter(name, "path") for name in re.findall(r"{(\w+)}", served.path)]
    in_query = [_parameter(name, "query") for name in served.query]
    done = {"description": served.summary}
    if served.answer:
        done |= _content(served.answer)
    return {
        "summary": served.summary,
        "parameters": in_path + in_query,
        "responses": {
            "200" if served.answer else "204": done,
            "default": {"description": "The error, as Iceberg's clients expect it"} | _content("Error"),
        },
    }


def _parameter(name: str, where: str) -> Json:
    return {"name": name, "in": where, "required": where == "path", "schema": _TEXT}


def _content(schema: str) -> Json:
    return {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}
