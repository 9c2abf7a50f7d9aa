"""The examples of docs/command-line.md: commands, and what each should print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).parents[2] / "docs" / "command-line.md"
ANYTHING = "…"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


class Example(NamedTuple):
    command: str
    output: str


def examples(document: Path = DOCUMENT) -> list[Example]:
    """All examples, in order: each may depend on earlier ones."""
    blocks = _BLOCK.findall(document.read_text())
    return [Example(*found) for block in blocks for found in _COMMAND.findall(block)]


def is_as_documented(output: str, documented: str) -> bool:
    """An ellipsis matches anything within a line; alone on a line it matches any lines."""
    pattern = re.escape(documented)
    pattern = re.sub(rf"(?m)^{ANYTHING}\n", r"(?:.*\\n)*", pattern.replace("\\\n", "\n"))
    return re.fullmatch(pattern.replace(ANYTHING, ".*"), output) is not None
