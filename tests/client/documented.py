"""Examples of the client documentation, and its expected tables."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, NamedTuple

from ottla.core.config_docs import field_docs

DOCUMENT = Path(__file__).parents[2] / "docs" / "client.md"
_EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    line: int
    code: str


def examples() -> list[Example]:
    text = DOCUMENT.read_text()
    return [Example(text.count("\n", 0, found.start(1)) + 1, found[1]) for found in _EXAMPLE.finditer(text)]


def table_of(config: type[Any]) -> str:
    """The table of options of a configuration class, as documented."""
    docs = field_docs(config)
    rows = [f"| `{each.name}` | {_default(each)} | {docs[each.name]} |" for each in fields(config)]
    return "\n".join(["| option | default | |", "|---|---|---|", *rows])


def _default(option: Field[Any]) -> str:
    if option.default is MISSING:
        return "`ottla-` and the process id"
    return f"`{option.default:_}`" if type(option.default) is int else f"`{option.default!r}`"
