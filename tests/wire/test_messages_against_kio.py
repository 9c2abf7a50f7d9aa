"""Every message of every version, byte for byte, in both directions, against kio."""

from __future__ import annotations

import random
from typing import Any

from kio_oracle import as_ours, kio_decode, kio_encode, kio_type, random_entity
from makers import EACH_MAKER, EACH_MESSAGE, EVERY_MESSAGE, decoder, encoder

from ottla.wire.declare import Request, Response
from ottla.wire.header import begin_request, has_tags_in_response_header

EXAMPLES = 12


@EACH_MAKER
@EACH_MESSAGE
def test_a_message_is_read_and_written_as_kio_reads_and_writes_it(
    maker: Any, message: type[Request | Response], version: int
) -> None:
    theirs = kio_type(message.API, message, version)
    decode, encode = decoder(maker, message, version), encoder(maker, message, version)
    pick = random.Random(f"{message.__name__} {version}")
    for _ in range(EXAMPLES):
        entity = random_entity(theirs, pick)
        expected = as_ours(entity, message, version)
        data = kio_encode(entity)

        assert decode(memoryview(data), 0) == expected
        written = b"".join(encode(expected, bytearray()))
        assert written == data
        assert kio_decode(theirs, written) == entity


@EACH_MAKER
def test_every_response_is_framed_with_the_header_that_kio_gives_it(maker: Any) -> None:
    for message, version in EVERY_MESSAGE:
        if not issubclass(message, Response):
            continue
        theirs = kio_type(message.API, message, version)
        entity = random_entity(theirs, random.Random(f"framed {message.__name__} {version}"))
        whole = kio_encode(theirs.__header_schema__(correlation_id=-77)) + kio_encode(entity)
        respond = maker.compile_responder(
            message,
            version,
            is_flexible=message.API.is_flexible(version),
            has_header_tags=has_tags_in_response_header(message.API, version),
        )
        assert b"".join(respond(as_ours(entity, message, version), -77)) == framed(whole)


@EACH_MAKER
def test_every_request_is_framed_with_the_header_that_kio_gives_it(maker: Any) -> None:
    for message, version in EVERY_MESSAGE:
        if not issubclass(message, Request):
            continue
        theirs = kio_type(message.API, message, version)
        entity = random_entity(theirs, random.Random(f"framed {message.__name__} {version}"))
        head = theirs.__header_schema__(
            request_api_key=message.API.key, request_api_version=version, correlation_id=5, client_id="me"
        )
        whole = kio_encode(head) + kio_encode(entity)
        frame = maker.compile_framer(message, version, is_flexible=message.API.is_flexible(version))
        before = begin_request(message.API, version, 5, "me")
        assert b"".join(frame(as_ours(entity, message, version), before)) == framed(whole)


def framed(whole: bytes) -> bytes:
    return len(whole).to_bytes(4) + whole
