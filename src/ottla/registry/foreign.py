"""Avro schemas that another registry stored in its own layout.

Avro's Java library prints the type of a schema first; Karapace sorts all keys. In that layout the schema would get a
second id when it is registered again, and a record that repeats its id would be taken for another schema.
"""

from __future__ import annotations

import json
from dataclasses import replace

from ottla.registry.errors import InvalidSchema
from ottla.registry.model import AVRO, Schema


def in_our_layout(schema: Schema) -> Schema:
    """The schema in canonical form, if it may not be; as it is if it has references, which are not known here."""
    if schema.type != AVRO or not _is_foreign(schema.text) or schema.references:
        return schema
    from ottla.registry.schemas import parse

    try:
        return replace(schema, text=parse(schema, ()).canonical())
    except InvalidSchema:
        return schema


def are_same(one: Schema, other: Schema) -> bool:
    """Whether two texts differ in nothing but their layout."""
    if one.text == other.text:
        return True
    if one.type != AVRO or other.type != AVRO:
        return False
    try:
        return bool(json.loads(one.text) == json.loads(other.text))
    except (ValueError, RecursionError):
        return False


def _is_foreign(text: str) -> bool:
    return text.startswith("[") or (text.startswith("{") and not text.startswith('{"type"'))
