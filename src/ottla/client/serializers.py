"""Serializers and deserializers of keys and values.

A serializer is any function from a value to bytes, and determines the types of the producer's `send`: `str.encode`
works. None, for a null key or value, is not passed to a serializer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Serializer: TypeAlias = "Callable[[T], bytes]"
Deserializer: TypeAlias = "Callable[[bytes], T]"

# Methods of a shared encoder and decoder: called without intermediate Python code.
encode_text: Final[Serializer[str]] = str.encode
decode_text: Final[Deserializer[str]] = bytes.decode
encode_json: Final[Serializer[Any]] = msgspec.json.Encoder().encode
decode_json: Final[Deserializer[Any]] = msgspec.json.Decoder().decode
