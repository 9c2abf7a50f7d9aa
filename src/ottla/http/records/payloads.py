"""Keys and values as JSON: text, JSON, base64 or hex, chosen automatically unless given."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Encoding = Literal["utf8", "json", "base64", "hex", "none"]
ShownEncoding = Literal["utf8", "json", "base64", "hex", "none", "schema"]
Wanted = Literal["auto", "utf8", "json", "base64", "hex", "schema"]
"""`schema`: decoded by the schema id that it carries; otherwise as `auto`."""

Shown = tuple[str | msgspec.Raw | None, ShownEncoding]

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_OPENING: Final = (b"{", b"[")
_NULL: Final = b"null"
_TEXT_MARK: Final = b'"'


def show(data: bytes | None, wanted: Wanted = "auto") -> Shown:
    """The bytes as a JSON value, and its encoding.

    If the requested encoding is not possible, another one is used: the returned encoding is authoritative.
    """
    if data is None:
        return None, "none"
    if wanted == "hex":
        return data.hex(), "hex"
    if wanted == "base64":
        return _base64(data), "base64"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _base64(data), "base64"
    if (wanted == "json" or (wanted in ("auto", "schema") and data.lstrip()[:1] in _OPENING)) and is_json(data):
        return msgspec.Raw(_on_one_line(data)), "json"
    # Text has no control characters except tabs and line ends: other bytes are not text, even if valid UTF-8.
    if wanted != "utf8" and _CONTROL.search(text):
        return _base64(data), "base64"
    return text, "utf8"


def is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _on_one_line(document: bytes) -> bytes:
    """JSON on one line, for line-based responses."""
    has_line_ends = b"\n" in document or b"\r" in document
    return msgspec.json.format(document, indent=-1) if has_line_ends else document


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def read(given: msgspec.Raw | None, encoding: Encoding | None = None) -> bytes | None:
    """The bytes of a JSON value; raises ValueError if that is impossible.

    Without an encoding a string is UTF-8, null is null, and everything else is JSON, as written.
    """
    written = _NULL if given is None else bytes(given)
    if encoding == "json":
        return written
    if written == _NULL:
        return None
    if encoding is None and not written.startswith(_TEXT_MARK):
        return written
    try:
        text = msgspec.json.decode(written, type=str)
    except msgspec.ValidationError:
        raise ValueError(f"with the encoding {encoding} it must be a string") from None
    return _READERS[encoding or "utf8"](text)


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("it is not base64") from None


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ValueError("it is not hexadecimal") from None


def _from_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("it is not Unicode text") from None


def _refuse_none(_text: str) -> bytes:
    raise ValueError("with the encoding none it must be null")


_READERS: Final[Mapping[str, Callable[[str], bytes]]] = {
    "utf8": _from_text,
    "base64": _from_base64,
    "hex": _from_hex,
    "none": _refuse_none,
}
