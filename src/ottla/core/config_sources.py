"""Sources of settings: a TOML file, the environment, the command line. config.py validates them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

PREFIX: Final = "OTTLA_"
CONFIG_FILE_VARIABLE: Final = "OTTLA_CONFIG"
BROKER_VARIABLE: Final = "OTTLA_BROKER"
PASSWORD_VARIABLE: Final = "OTTLA_PASSWORD"  # noqa: S105 - where it is, not what it is
HTTP_VARIABLE: Final = "OTTLA_HTTP"
REGISTRY_VARIABLE: Final = "OTTLA_SCHEMA_REGISTRY"
NOT_SETTINGS: Final = frozenset(
    {CONFIG_FILE_VARIABLE, BROKER_VARIABLE, PASSWORD_VARIABLE, HTTP_VARIABLE, REGISTRY_VARIABLE}
)
"""Variables with our prefix that are read elsewhere."""
DEFAULT_HTTP_PORT: Final = 8080
BROKERS_TABLE: Final = "brokers"
"""The table of the file with connection profiles of commands, not broker settings."""

MAX_FILE_BYTES: Final = 1 << 20

# Kubernetes sets these in every pod next to a Service named ottla or ottla-…; they are not settings.
_SERVICE_LINK: Final = (
    r"OTTLA_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_URL: Final = r"(tcp|udp|sctp)://"

_TABLE: Final = r"\s*\[{1,2}([^\[\]]+)\]"
_KEY: Final = r"([^=#\[\]{},]+)="
_TOML_POSITION: Final = r" \(at (?:line ([0-9]+), column [0-9]+|end of document)\)$"


class Given(Struct, frozen=True):
    """A raw value with its name, not validated yet."""

    name: str
    value: object
    source: str
    """Its source: `ottla.toml:3`, a variable, a flag."""
    is_text: bool
    """Whether the value is text to be converted to another type."""


class Flag(Struct, frozen=True):
    """A value from the command line and its flag."""

    flag: str
    value: object


def variable_of(name: str) -> str:
    return PREFIX + name.replace(".", "_").upper()


def from_command_line(flags: Mapping[str, Flag]) -> list[Given]:
    return [Given(name, given.value, given.flag, is_text=isinstance(given.value, str)) for name, given in flags.items()]


def from_environment(environment: Mapping[str, str], names: Collection[str]) -> list[Given]:
    """Every variable with our prefix; an unknown one keeps its name for the error."""
    name_of = {variable_of(name): name for name in names}
    if len(name_of) != len(names):
        raise ValueError("two settings would share one environment variable")
    given = []
    for variable, value in environment.items():
        if variable in name_of:
            given.append(Given(name_of[variable], value, variable, is_text=True))
        elif variable.startswith(PREFIX) and not _is_foreign(variable, value):
            given.append(Given(variable, value, "environment", is_text=True))
    return given


def _is_foreign(variable: str, value: str) -> bool:
    if variable in NOT_SETTINGS or re.fullmatch(_SERVICE_LINK, variable):
        return True
    return variable.endswith("_PORT") and re.match(_SERVICE_URL, value) is not None


def from_file(path: Path, sections: Mapping[str, Collection[str]]) -> list[Given]:
    """Every value of a TOML file whose tables are sections."""
    text = _read(path)
    table = _parse(path, text)
    table.pop(BROKERS_TABLE, None)
    return _given(path, lines_of_keys(text), _flatten(table, sections))


def from_named_tables(path: Path, table: str, keys: Collection[str]) -> tuple[list[str], list[Given]]:
    """The sections `table.NAME` of a TOML file, one for each [table.NAME], and all their values."""
    text = _read(path)
    lines = lines_of_keys(text)
    content = _parse(path, text).get(table, {})
    if not isinstance(content, dict):
        raise _not_a_table(path, table, table, lines)
    named = {f"{table}.{name}": inner for name, inner in content.items()}
    for section, inner in named.items():
        if not isinstance(inner, dict):
            raise _not_a_table(path, table, section, lines)
    return list(named), _given(path, lines, _flatten(named, dict.fromkeys(named, keys)))


def _not_a_table(path: Path, table: str, name: str, lines: Mapping[str, int]) -> ConfigError:
    where = _place(path, _line_of(name, lines))
    return ConfigError(f"{where}: {name} must be a table; write settings below [{table}.NAME]")


def _given(path: Path, lines: Mapping[str, int], values: Iterable[tuple[str, object]]) -> list[Given]:
    return [Given(name, value, _place(path, _line_of(name, lines)), is_text=False) for name, value in values]


def lines_of_keys(text: str) -> dict[str, int]:
    """The line of each key and table of a TOML file, as far as possible without parsing it again.

    TOML forbids duplicate keys, so a name found twice also occurs inside multi-line text: better no line
    than a wrong one.
    """
    lines: dict[str, int] = {}
    repeated: set[str] = set()
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(_TABLE, line):
            name = table = _plain_key(header[1])
        elif key := re.match(_KEY, line):
            name = f"{table}.{_plain_key(key[1])}" if table else _plain_key(key[1])
        else:
            continue
        if name in lines:
            repeated.add(name)
        lines[name] = number
    return {name: line for name, line in lines.items() if name not in repeated}


def _plain_key(text: str) -> str:
    return ".".join(part.strip(" \t\"'") for part in text.split("."))


def _line_of(name: str, lines: Mapping[str, int]) -> int | None:
    """The line of a key, or of its container (an inline table is one line), or of the first item in it."""
    holder = name = name.strip('"')
    while holder not in lines and "." in holder:
        holder = holder.rpartition(".")[0]
    if holder in lines:
        return lines[holder]
    return next((line for inner, line in lines.items() if inner.startswith(f"{name}.")), None)


def printable(path: Path) -> str:
    """The path as printable text, even if it contains bytes that are not UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _place(path: Path, line: int | None) -> str:
    return printable(path) if line is None else f"{printable(path)}:{line}"


def _flatten(table: Mapping[str, object], sections: Mapping[str, Collection[str]]) -> Iterator[tuple[str, object]]:
    for section, content in table.items():
        if section not in sections or not isinstance(content, dict):
            # Quoted, `"log.segment_bytes" = 1` is a single key, not the key of a section.
            yield (f'"{section}"' if "." in section else section), content
            continue
        for key, value in content.items():
            name = f"{section}.{key}"
            yield (name, value) if key in sections[section] else _descend(name, value)


def _descend(name: str, value: object) -> tuple[str, object]:
    """`log.retention.ms = 1`, Kafka's spelling, is nested tables in TOML: report the name as written."""
    while isinstance(value, dict) and len(value) == 1:
        [(key, value)] = value.items()
        name = f"{name}.{key}"
    return name, value


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{printable(path)}: cannot be read: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{printable(path)}: larger than {MAX_FILE_BYTES} bytes, so not a configuration file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{_place(path, line)}: not UTF-8 text (byte 0x{data[error.start]:02x})") from None


def _parse(path: Path, text: str) -> dict[str, object]:
    # Imported lazily: not needed without a file.
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{printable(path)}: not valid TOML: nested too deeply") from None
    except ValueError as error:
        position = re.search(_TOML_POSITION, str(error))
        line = int(position[1]) if position and position[1] else None
        reason = re.sub(_TOML_POSITION, "" if line else " at the end of the file", str(error))
        raise ConfigError(f"{_place(path, line)}: not valid TOML: {reason}") from None
