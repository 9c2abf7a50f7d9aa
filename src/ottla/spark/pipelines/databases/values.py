"""Values of Spark's rows as JSON."""

from __future__ import annotations

import json


def as_json(value: object) -> str:
    return json.dumps(plain(value), default=str, ensure_ascii=False)


def plain(value: object) -> object:
    """A row becomes an object with the names of its fields; to the json module it is a tuple, hence a list."""
    if hasattr(value, "asDict"):
        return {name: plain(each) for name, each in value.asDict().items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    return value.hex() if isinstance(value, bytes | bytearray) else value


def is_nested(value: object) -> bool:
    return isinstance(value, list | dict) or hasattr(value, "asDict")
