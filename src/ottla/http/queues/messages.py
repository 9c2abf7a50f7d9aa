"""Conversion of messages to JSON, by v-queue's rules: text as text, JSON as JSON, and anything else as base64."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

if TYPE_CHECKING:
    from ottla.queue import Message

_BINARY: Final = "[Binary Data]"
_JSON: Final = ("application/json", "application/x-www-form-urlencoded")
"""Content types treated as JSON; the second is curl's default."""


class Malformed(Exception):
    """A malformed message."""


class QueueMessage(msgspec.Struct, omit_defaults=True):
    part: int
    offset: int
    msg_type: Literal["string", "object"]
    value: Any
    raw_bytes: str = ""


class PushedMessage(msgspec.Struct, forbid_unknown_fields=True):
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    msg_type: Literal["string", "object", ""] = ""
    """By default, a JSON string is text and anything else an object."""
    raw_bytes: str | None = None


class PushedMessages(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[PushedMessage]


def shown(message: Message) -> QueueMessage:
    if message.is_text:
        try:
            return QueueMessage(message.part, message.offset, "string", message.body.decode())
        except UnicodeDecodeError:
            pass
    elif _is_json(message.body):
        # Kept as raw JSON, so that numbers keep all digits.
        return QueueMessage(message.part, message.offset, "object", msgspec.Raw(message.body))
    return QueueMessage(message.part, message.offset, "object", _BINARY, base64.b64encode(message.body).decode())


def messages_in(body: bytes, content_type: str) -> list[bytes | str]:
    """The messages of a request: many as JSON, or a single one in any other content type."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _JSON:
        try:
            given = msgspec.json.decode(body, type=PushedMessages)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
            raise Malformed(f'the body has to be {{"messages": [{{"value": …}}, …]}}: {wrong}') from None
        return [_message_of(one) for one in given.messages]
    if kind.startswith("text/"):
        try:
            return [body.decode()]
        except UnicodeDecodeError:
            raise Malformed("the body is not UTF-8 text; send it as application/octet-stream") from None
    return [body]


def _message_of(given: PushedMessage) -> bytes | str:
    if given.raw_bytes is not None:
        try:
            return base64.b64decode(given.raw_bytes, validate=True)
        except ValueError:
            raise Malformed("raw_bytes has to be base64") from None
    value = b"" if isinstance(given.value, msgspec.UnsetType) else bytes(given.value)
    if not value:
        raise Malformed("a message needs value or raw_bytes")
    is_string = value.startswith(b'"')
    if given.msg_type == "string" and not is_string:
        raise Malformed('the value of a "string" has to be a JSON string')
    if is_string and given.msg_type != "object":
        text: str = msgspec.json.decode(value)
        return text
    return value


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
