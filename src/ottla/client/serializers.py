"""Keys and values to bytes and back.

A serializer is any function from a value to bytes, and its types are those of the producer's `send`: `str.encode` will
do. None, for a null key or value, is given to no serializer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Serializer: TypeAlias = "Callable[[T], bytes]"
Deserializer: TypeAlias = "Callable[[bytes], T]"

# Methods of one encoder and decoder for all: called without going through Python code of ours.
encode_text: Final[Serializer[str]] = str.encode
decode_text: Final[Deserializer[str]] = bytes.decode
encode_json: Final[Serializer[Any]] = msgspec.json.Encoder().encode
decode_json: Final[Deserializer[Any]] = msgspec.json.Decoder().decode
