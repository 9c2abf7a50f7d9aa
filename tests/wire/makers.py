"""The two makers of codecs, which must not differ, and every message they are tried on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ottla.wire import compiler
from ottla.wire.apis import APIS, request_type, response_type

if TYPE_CHECKING:
    from ottla.wire.compiler import Decoder, Encoder
    from ottla.wire.declare import Request, Response

try:
    from ottla.wire import plans
except ImportError:  # installed without a C compiler
    MAKERS: list[Any] = [compiler]
else:
    MAKERS = [compiler, plans]

EACH_MAKER = pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__.rpartition(".")[2])

EVERY_MESSAGE = [
    (message, version)
    for api in APIS.values()
    for message in (request_type(api), response_type(api))
    for version in range(api.first, api.last + 1)
]

EACH_MESSAGE = pytest.mark.parametrize(
    ("message", "version"),
    [pytest.param(*each, id=f"{each[0].__name__}-v{each[1]}") for each in EVERY_MESSAGE],
)


def decoder(
    maker: Any, message: type[Request | Response], version: int, room: int = 1_000_000
) -> Decoder[Request | Response]:
    made: Decoder[Request | Response] = maker.compile_decoder(
        message, version, is_flexible=message.API.is_flexible(version), room=room
    )
    return made


def encoder(maker: Any, message: type[Request | Response], version: int) -> Encoder[Request | Response]:
    made: Encoder[Request | Response] = maker.compile_encoder(
        message, version, is_flexible=message.API.is_flexible(version)
    )
    return made
