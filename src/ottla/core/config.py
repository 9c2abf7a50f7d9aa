"""Configuration: frozen structs, one per package, built from these sources, lowest precedence first:

default < TOML file < OTTLA_<SECTION>_<KEY> in the environment < command line

A class has a default for every field, validates itself in `__post_init__` with a ValueError that names the
field, and does not know the source of its values. The classes are passed by the caller: core
knows no package above it. All errors are reported at once, even in values that a higher source overrides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_type_hints

from msgspec import Struct

from ottla.core.config_sources import (
    PREFIX,
    Flag,
    Given,
    from_command_line,
    from_environment,
    from_file,
    from_named_tables,
    variable_of,
)
from ottla.core.config_values import MASK, convert, is_secret, shorten
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

__all__ = ["DEFAULT_SOURCE", "Flag", "Setting", "Settings", "load", "load_named"]

DEFAULT_SOURCE: Final = "default"
MAX_PROBLEMS_SHOWN: Final = 20

Sections = Mapping[str, type[Struct]]
C = TypeVar("C", bound=Struct)


class Setting(Struct, frozen=True):
    """One effective value and its source."""

    name: str
    value: object
    default: object
    source: str

    @property
    def is_secret(self) -> bool:
        return is_secret(self.name)


class Settings(Struct, frozen=True):
    """The result of `load`."""

    configs: Mapping[str, object]
    """The struct of each section."""
    values: tuple[Setting, ...]
    """Every setting, by section and in the order of the fields."""
    file: Path | None

    def section(self, kind: type[C]) -> C:
        """The configuration of this class."""
        for config in self.configs.values():
            if isinstance(config, kind):
                return config
        raise KeyError(f"no section is a {kind.__name__}")


def load(
    sections: Sections,
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    command_line: Mapping[str, Flag] | None = None,
) -> Settings:
    """Build the struct of every section, or raise a ConfigError with all problems."""
    keys = {section: kind.__struct_fields__ for section, kind in sections.items()}
    names = {f"{section}.{key}" for section in keys for key in keys[section]}
    # Lowest source first: the last value given for a name wins.
    given = from_file(file, keys) if file is not None else []
    given += from_environment(environment or {}, names)
    given += from_command_line(command_line or {})
    return _build(sections, names, given, file)


def load_named(kind: type[C], table: str, file: Path) -> dict[str, C]:
    """Every [table.NAME] of a TOML file by its name, built like a section."""
    keys = kind.__struct_fields__
    found, given = from_named_tables(file, table, keys)
    names = {f"{section}.{key}" for section in found for key in keys}
    built = _build(dict.fromkeys(found, kind), names, given, file)
    return {section.removeprefix(f"{table}."): cast("C", config) for section, config in built.configs.items()}


def _build(sections: Sections, names: Collection[str], given: Sequence[Given], file: Path | None) -> Settings:
    unknown = [one for one in given if one.name not in names]
    problems = [_unknown(one, names, sections) for one in unknown[:MAX_PROBLEMS_SHOWN]]
    builders = [
        _Section(section, kind, [one for one in given if one.name in names and _section_of(one) == section])
        for section, kind in sections.items()
    ]
    configs = {builder.name: builder.build() for builder in builders}
    problems += [problem for builder in builders for problem in builder.problems]
    if problems:
        raise ConfigError(_report(problems, len(problems) + max(0, len(unknown) - MAX_PROBLEMS_SHOWN)))
    return Settings(configs, tuple(one for builder in builders for one in builder.settings()), file)


class _Section:
    """A section under construction: each value is converted separately, then the class validates them together."""

    def __init__(self, name: str, kind: type[Any], given: Sequence[Given]) -> None:
        self.name = name
        self.problems: list[str] = []
        self._kind = kind
        self._values: dict[str, object] = {}
        self._sources: dict[str, str] = {}
        self._config: object = None
        self._suspects: set[str] = set()
        # Resolving the types of a class is the most expensive part: skip it without values to convert.
        types = get_type_hints(kind, include_extras=True) if given else {}
        for one in given:
            key = one.name.rpartition(".")[2]
            try:
                value = convert(one.name, types[key], one.value, is_text=one.is_text)
            except ValueError as error:
                self.problems.append(f"{one.source}: {one.name}: {error}")
                self._suspects.add(key)
            else:
                self._values[key] = value
                self._sources[key] = one.source

    def build(self) -> object:
        """The class with all valid values; `problems` describes the others.

        The class stops at its first error, so the values it names are removed and it is built again.
        An error that names a removed value may only be a consequence, and is not reported.
        """
        while True:
            accepted = {key: value for key, value in self._values.items() if key not in self._suspects}
            try:
                self._config = self._kind(**accepted)
            except ValueError as error:
                named = self._fields_in(str(error))
                if not accepted:
                    if self.problems:
                        return None
                    raise  # the defaults conflict, which is a bug
                if not self._suspects.intersection(named):
                    self.problems.append(self._objection(str(error), named, accepted))
                blamed = [key for key in named if key in accepted]
                if not blamed:
                    return None
                self._suspects.update(blamed)
            else:
                return self._config

    def settings(self) -> list[Setting]:
        """Every field, read back from the built class, which may have normalized a value."""
        defaults = self._kind()
        return [
            Setting(
                name=f"{self.name}.{name}",
                value=getattr(self._config, name),
                default=getattr(defaults, name),
                source=self._sources.get(name, DEFAULT_SOURCE),
            )
            for name in self._kind.__struct_fields__
        ]

    def _fields_in(self, message: str) -> list[str]:
        """The fields that a message names, in its order."""
        words = re.findall(r"\w+", message)
        return sorted((name for name in self._kind.__struct_fields__ if name in words), key=words.index)

    def _objection(self, message: str, named: Iterable[str], accepted: Mapping[str, object]) -> str:
        for key, value in accepted.items():
            if is_secret(key) and isinstance(value, str) and value:
                message = message.replace(value, MASK)
        blamed = [key for key in named if key in accepted] or list(accepted)
        for key in named:
            message = re.sub(rf"\b{key}\b", f"{self.name}.{key}", message, count=1)
        return f"{', '.join(dict.fromkeys(self._sources[key] for key in blamed))}: {message}"


def _section_of(given: Given) -> str:
    return given.name.rpartition(".")[0]


def _report(problems: Sequence[str], count: int) -> str:
    if count == 1:
        return problems[0]
    shown = problems[:MAX_PROBLEMS_SHOWN]
    lines = [f"{count} settings cannot be used:", *(f"  {problem}" for problem in shown)]
    if count > len(shown):
        lines.append(f"  and {count - len(shown)} more")
    return "\n".join(lines)


def _unknown(given: Given, names: Iterable[str], sections: Sections) -> str:
    name = shorten(given.name if given.name.isprintable() else repr(given.name))
    if given.name in sections:
        return f"{given.source}: {name} is a section; write its settings below [{name}]"
    if isinstance(given.value, dict) and "." not in given.name:
        nearest = _nearest(given.name, sections)
        hint = f"did you mean [{nearest}]?" if nearest else f"the sections are {', '.join(sections)}"
        return f"{given.source}: unknown section [{name}]; {hint}"
    nearest = _nearest(given.name, names)
    if nearest is None:
        return f"{given.source}: unknown setting {name}; no setting has a similar name"
    suggestion = variable_of(nearest) if given.name.startswith(PREFIX) else nearest
    return f"{given.source}: unknown setting {name}; did you mean {suggestion}?"


def _nearest(name: str, candidates: Iterable[str]) -> str | None:
    ordered = sorted(candidates)
    key = name.strip('"').rpartition(".")[2]
    for candidate in ordered:
        if candidate.rpartition(".")[2] == key:
            return candidate  # the right key in the wrong section
    by_text = {_comparable(candidate): candidate for candidate in ordered}
    from ottla.core.closest import closest  # only for errors

    close = closest(_comparable(name), by_text)
    return None if close is None else by_text[close]


def _comparable(name: str) -> str:
    """Normalized spelling: users write `segment-bytes`, Kafka `log.segment.bytes`, a variable OTTLA_LOG_…"""
    return re.sub(r"[.\- ]", "_", name.strip('"').removeprefix(PREFIX).lower())
