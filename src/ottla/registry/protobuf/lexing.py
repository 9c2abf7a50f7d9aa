"""Tokens of a .proto file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.registry.errors import InvalidSchema

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*|0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?f?)
    | (?P<sign>[{}\[\]()<>=;:,.+/-])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    kind: str
    """`word`, `text`, `sign` or `end`."""
    text: str
    line: int


def tokens(source: str) -> Iterator[Token]:
    at, line = 0, 1
    while at < len(source):
        found = _TOKEN.match(source, at)
        if found is None:
            raise InvalidSchema(f"line {line}: unexpected {source[at]!r}")
        kind, text = str(found.lastgroup), found.group()
        if kind != "space":
            yield Token(kind, unquoted(text) if kind == "text" else text, line)
        line += text.count("\n")
        at = found.end()
    yield Token("end", "end of file", line)


def unquoted(text: str) -> str:
    def decoded(found: re.Match[str]) -> str:
        hexadecimal, octal, short, long, other = found.groups()
        if other is not None:
            return _SIMPLE.get(other, other)
        number = int(octal, 8) if octal is not None else int(hexadecimal or short or long, 16)
        return chr(min(number, 0x10FFFF))

    return _ESCAPE.sub(decoded, text[1:-1])
