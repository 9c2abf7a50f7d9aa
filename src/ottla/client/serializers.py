"""Keys and values to bytes and back: by name, or by a function of your own.

None stays None, a null key or value, and is given to no serializer. "bytes" is what travels as it is, so it has
no function at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

Raw: TypeAlias = Literal["bytes"]
Text: TypeAlias = Literal["str"]
Json: TypeAlias = Literal["json"]
Name: TypeAlias = Literal["bytes", "str", "json"]
Serializer: TypeAlias = "Callable[[T], bytes]"
Deserializer: TypeAlias = "Callable[[bytes], T]"

# One each for all: a method of an encoder, called without going through Python code of ours.
_SERIALIZERS: Final[dict[str, Serializer[Any] | None]] = {
    "bytes": None,
    "str": str.encode,
    "json": msgspec.json.Encoder().encode,
}
_DESERIALIZERS: Final[dict[str, Deserializer[Any] | None]] = {
    "bytes": None,
    "str": bytes.decode,
    "json": msgspec.json.Decoder().decode,
}


def serializer_for(option: str, given: Name | Serializer[Any]) -> Serializer[Any] | None:
    """The function to call; None for bytes, which need none."""
    return _look_up(option, given, _SERIALIZERS)


def deserializer_for(option: str, given: Name | Deserializer[Any]) -> Deserializer[Any] | None:
    """The function to call; None for bytes, which need none."""
    return _look_up(option, given, _DESERIALIZERS)


def _look_up(
    option: str, given: str | Callable[[Any], Any], named: dict[str, Callable[[Any], Any] | None]
) -> Callable[[Any], Any] | None:
    if callable(given):
        return given
    if given not in named:
        raise ConfigError(f"{option} must be one of {', '.join(map(repr, named))} or a function, got {given!r}")
    return named[given]
