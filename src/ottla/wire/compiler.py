"""Turns a declaration and a version into a decoder or an encoder, the first time somebody needs it."""

from __future__ import annotations

import linecache
from struct import Struct as Format
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ottla.wire.decoding import DecoderSource
from ottla.wire.encoding import EncoderSource

if TYPE_CHECKING:
    from ottla.wire.declare import AnyBytes, Message
    from ottla.wire.source import Source

_SIZE: Final = Format(">i")

MessageT = TypeVar("MessageT", bound="Message")
MessageT_co = TypeVar("MessageT_co", bound="Message", covariant=True)
MessageT_contra = TypeVar("MessageT_contra", bound="Message", contravariant=True)


class Decoder(Protocol[MessageT_co]):
    def __call__(self, data: memoryview, position: int, /) -> MessageT_co:
        """Read the message that fills `data` from `position` to its end, or raise ProtocolError."""


class Encoder(Protocol[MessageT_contra]):
    def __call__(self, message: MessageT_contra, before: bytearray, /) -> list[AnyBytes]:
        """Append the message to `before`; return the buffers to send, of which that is the first."""


class Responder(Protocol[MessageT_contra]):
    def __call__(self, response: MessageT_contra, correlation_id: int, /) -> list[AnyBytes]:
        """A whole frame, as buffers to send one after another."""


def compile_decoder(struct: type[MessageT], version: int, *, is_flexible: bool, room: int) -> Decoder[MessageT]:
    what = f"{struct.__name__} v{version}"
    source = DecoderSource(what, version, is_flexible=is_flexible).write(struct, room)
    decoder: Decoder[MessageT] = _run(source, f"<ottla decode {what}>")["decode"]
    return decoder


def compile_encoder(struct: type[MessageT], version: int, *, is_flexible: bool) -> Encoder[MessageT]:
    what = f"{struct.__name__} v{version}"
    source = EncoderSource(what, version, is_flexible=is_flexible).write(struct)
    encoder: Encoder[MessageT] = _run(source, f"<ottla encode {what}>")["encode"]
    return encoder


def compile_framer(struct: type[MessageT], version: int, *, is_flexible: bool) -> Encoder[MessageT]:
    """An encoder that also fills in the size of the frame, the first four bytes of what it is given."""
    encode = compile_encoder(struct, version, is_flexible=is_flexible)

    def encode_framed(message: MessageT, before: bytearray) -> list[AnyBytes]:
        parts = encode(message, before)
        _SIZE.pack_into(before, 0, sum(map(len, parts)) - _SIZE.size)
        return parts

    return encode_framed


def compile_responder(
    struct: type[MessageT], version: int, *, is_flexible: bool, has_header_tags: bool
) -> Responder[MessageT]:
    encode_framed = compile_framer(struct, version, is_flexible=is_flexible)
    head = Format(">iix" if has_header_tags else ">ii")

    def encode_response(response: MessageT, correlation_id: int) -> list[AnyBytes]:
        return encode_framed(response, bytearray(head.pack(0, correlation_id)))

    return encode_response


def _run(source: Source, filename: str) -> dict[str, Any]:
    text = source.text
    exec(compile(text, filename, "exec"), source.names)  # noqa: S102  # text of our own making
    # With this, a traceback through generated code shows its lines.
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return source.names
