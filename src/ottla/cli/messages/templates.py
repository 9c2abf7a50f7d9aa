r"""`--format` with a template, in the notation of kcat.

%t topic, %p partition, %o offset, %T timestamp in ms, %k key, %K its size, %s value, %S its size, %h headers, %% %;
\n, \r, \t, \\ and \x1f are characters. A template ends without a newline unless it says so. The size of a null is -1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.consumer.record import ConsumerRecord

    Piece = Callable[[ConsumerRecord[bytes, bytes]], bytes]

_TOKEN: Final = re.compile(r"%(?P<field>.?)|\\(?:x(?P<hex>[0-9a-fA-F]{2})|(?P<escape>.?))", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def _size(content: bytes | None) -> bytes:
    return b"-1" if content is None else b"%d" % len(content)


def _headers(record: ConsumerRecord[bytes, bytes]) -> bytes:
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.headers)


_FIELDS: Final[dict[str, Piece]] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp,
    "k": lambda record: record.key or b"",
    "K": lambda record: _size(record.key),
    "s": lambda record: record.value or b"",
    "S": lambda record: _size(record.value),
    "h": _headers,
    "%": lambda _: b"%",
}


def template(text: str) -> Piece:
    """A function that formats a record; ConfigError if the template is invalid."""
    pieces: list[Piece] = []
    at = 0
    for token in _TOKEN.finditer(text):
        if token.start() > at:
            pieces.append(_constant(text[at : token.start()].encode()))
        pieces.append(_piece(token))
        at = token.end()
    if at < len(text):
        pieces.append(_constant(text[at:].encode()))
    return lambda record: b"".join([piece(record) for piece in pieces])


def _piece(token: re.Match[str]) -> Piece:
    if token["field"] is not None:
        if token["field"] not in _FIELDS:
            raise ConfigError(
                f"--format: unknown field %{token['field']}; there are {', '.join('%' + f for f in _FIELDS)}"
            )
        return _FIELDS[token["field"]]
    if token["hex"] is not None:
        return _constant(bytes.fromhex(token["hex"]))
    if token["escape"] not in _ESCAPES:
        raise ConfigError(f"--format: unknown escape sequence \\{token['escape']} (use \\n, \\r, \\t, \\\\ or \\x1f)")
    return _constant(_ESCAPES[token["escape"]])


def _constant(content: bytes) -> Piece:
    return lambda _: content
