"""A setting's value: parsed from text or TOML, described in errors, formatted as TOML."""

from __future__ import annotations

import math
import re
import types
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

Kind: TypeAlias = Any
"""The type of a field, possibly an expression such as `int | None`, for which mypy has no better type."""

MASK: Final = "********"

_SECRET_WORDS: Final = ("password", "passphrase", "secret", "token", "credential")
_SECRET_NAMES: Final = ("users",)
"""Maps of names and passwords."""
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_INTEGER: Final = r"[+-]?[0-9]+(_[0-9]+)*"
_WITH_UNIT: Final = r"([0-9]+(?:_[0-9]+)*)\s*([A-Za-z]+)"
_LONGEST_SHOWN: Final = 80
_USER_INFO: Final = r"(\w://[^/?#@:\s]*:)[^/?#@\s]*@"
"""The password in an address such as https://user:password@host."""

# A bare k, m or g is not accepted: it is ambiguous between 1000 and 1024.
_SIZES: Final = {
    "b": 1,
    **{prefix + "b": 1000**power for power, prefix in enumerate("kmgtp", 1)},
    **{prefix + "ib": 1024**power for power, prefix in enumerate("kmgtp", 1)},
}
_DURATIONS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_UNITS: Final = {"_bytes": _SIZES, "_ms": _DURATIONS}
_SPOKEN_UNITS: Final = {
    "_bytes": (("PiB", 1024**5), ("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)),
    "_ms": (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)),
}


def is_secret(name: str) -> bool:
    """Whether the value is secret. A token's lifetime is not, hence the units."""
    is_named = name.rpartition(".")[2] in _SECRET_NAMES or any(word in name for word in _SECRET_WORDS)
    return is_named and _unit_suffix(name) is None


def without_secrets(name: str, value: object) -> object:
    """The value with secrets removed: passwords in addresses, arguments of programs that print secrets."""
    if is_secret(name) and value:
        return MASK
    if name.endswith("_command") and isinstance(value, tuple | list):
        return [*value[:1], *(MASK for _ in value[1:])]
    if isinstance(value, str):
        return re.sub(_USER_INFO, rf"\1{MASK}@", value)
    if isinstance(value, tuple | list):
        return [without_secrets(name, each) for each in value]
    if isinstance(value, dict):
        return {key: without_secrets(str(key), each) for key, each in value.items()}
    return value


def convert(name: str, kind: Kind, raw: object, *, is_text: bool) -> object:
    """Convert `raw` to type `kind`, or raise ValueError with the expected form.

    Text (`is_text`) from the environment or command line is parsed leniently; a TOML value has a
    type, which must match.
    """
    # Imported lazily: not needed with defaults only.
    import msgspec

    try:
        prepared = _prepare(_unit_suffix(name), kind, raw, is_text=is_text)
        value: object = msgspec.convert(prepared, kind, strict=not is_text, dec_hook=_decode)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("not finite")  # noqa: TRY301 - a NaN would slip through every `x < limit` check
    except (ValueError, TypeError, RuntimeError):
        got = "" if is_secret(name) else f", got {shorten(repr(raw))}"
        raise ValueError(f"expected {describe(name, kind)}{got}") from None
    return value


def describe(name: str, kind: Kind) -> str:
    """The expected form of a setting of this type, for an error message."""
    base, is_optional = _unwrap(kind)
    return _describe(_unit_suffix(name), base) + (" or none" if is_optional else "")


def to_toml(value: object) -> str:
    """The value as written in a TOML file; None, which TOML lacks, as its text form."""
    import msgspec

    plain = to_plain(value)
    if plain is None:
        return '"none"'
    if isinstance(plain, list | tuple):
        return f"[{', '.join(map(to_toml, plain))}]"
    if isinstance(plain, dict):
        return f"{{{', '.join(f'{to_toml(key)} = {to_toml(item)}' for key, item in plain.items())}}}"
    if isinstance(plain, float):
        return repr(plain)
    # JSON strings, numbers and booleans are valid TOML, except for this character.
    return msgspec.json.encode(plain).decode().replace("\x7f", "\\u007f")


def to_plain(value: object) -> object:
    """The value in JSON types."""
    import msgspec

    builtin: object = msgspec.to_builtins(value, enc_hook=str, order="sorted")
    return builtin


def in_units(name: str, value: object) -> str | None:
    """A human-readable size or duration (`1GiB`, `7d`), or None if that would not be exact."""
    suffix = _unit_suffix(name)
    if suffix is None or not isinstance(value, int) or value <= 0:
        return None
    for unit, factor in _SPOKEN_UNITS[suffix]:
        if value % factor == 0:
            return f"{value // factor}{unit}"
    return None


def quantity(unit: Literal["bytes", "ms"], text: str) -> int:
    """A size or duration, with or without a unit, in bytes or milliseconds; ValueError if it is neither."""
    return _with_unit(text.strip(), _UNITS[f"_{unit}"])


def shorten(text: str) -> str:
    """The text, truncated for error messages."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _unit_suffix(name: str) -> str | None:
    return next((suffix for suffix in _UNITS if name.endswith(suffix)), None)


def _unwrap(kind: Kind) -> tuple[Kind, bool]:
    """The type without NewType, Annotated and Optional, and whether None is allowed."""
    if hasattr(kind, "__supertype__"):
        return _unwrap(kind.__supertype__)
    if _origin(kind) is Annotated:
        return _unwrap(get_args(kind)[0])
    if _origin(kind) in {Union, types.UnionType}:
        others = [member for member in get_args(kind) if member is not types.NoneType]
        if len(others) == 1:
            return _unwrap(others[0])[0], True
    return kind, False


def _origin(kind: Kind) -> object:
    return get_origin(kind)


def _prepare(unit: str | None, kind: Kind, raw: object, *, is_text: bool) -> object:
    """Conversions that msgspec lacks: none, units, yes and no, underscores, comma-separated lists."""
    if not isinstance(raw, str):
        return raw
    raw.encode()  # rejects surrogates from a variable or argument that is not UTF-8
    base, is_optional = _unwrap(kind)
    if is_optional and raw.strip().lower() == "none":
        return None
    if base is int and unit is not None:
        return _with_unit(raw.strip(), _UNITS[unit])
    if is_text:
        return _read_text(unit, base, raw)
    return raw


def _read_text(unit: str | None, base: Kind, text: str) -> object:
    if base is bool:
        return _BOOLEANS.get(text.strip().lower(), text)
    if base is int:
        return _integer(text.strip())
    if _origin(base) in {list, tuple, set, frozenset}:
        items = [item.strip() for item in text.split(",")] if text.strip() else []
        return [_prepare(unit, get_args(base)[0], item, is_text=True) for item in items]
    return text


def _integer(text: str) -> int:
    if not re.fullmatch(_INTEGER, text):
        raise ValueError("not an integer")
    return int(text)


def _with_unit(text: str, units: dict[str, int]) -> int:
    match = re.fullmatch(_WITH_UNIT, text)
    if match is None:
        return _integer(text)
    factor = units.get(match[2].lower())
    if factor is None:
        raise ValueError("not a unit")
    return int(match[1]) * factor


def _decode(kind: type, raw: object) -> object:
    """Types that msgspec does not support."""
    if kind is Path and isinstance(raw, str) and raw and "\0" not in raw:
        return Path(raw).expanduser()
    raise ValueError("not a path")


def _describe(unit: str | None, base: Kind) -> str:
    if base is int and unit is not None:
        return _describe_quantity(unit)
    if isinstance(base, type) and issubclass(base, Enum):
        return f"one of {', '.join(str(member.value) for member in base)}"
    if _origin(base) is Literal:
        return f"one of {', '.join(map(str, get_args(base)))}"
    if _origin(base) in {list, tuple, set, frozenset}:
        return f"a list, each item {_describe(unit, _unwrap(get_args(base)[0])[0])}"
    plain = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}
    return plain.get(base, str(base))


def _describe_quantity(unit: str) -> str:
    if unit == "_bytes":
        return 'a number of bytes (such as 1048576, or "1MiB" with a unit)'
    return 'a number of milliseconds (such as 5000, or "5s" with a unit)'
