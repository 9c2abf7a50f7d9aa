"""Parses the text of a file into a pipeline, or reports all errors."""

from __future__ import annotations

import os
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final, cast

from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.column_checks import check_columns
from ottla.spark.pipelines.definition import Pipeline
from ottla.spark.pipelines.fields import Fields, Mistakes, setting_text
from ottla.spark.pipelines.keys import FileContext
from ottla.spark.pipelines.loading_sources import read_source
from ottla.spark.pipelines.loading_steps import read_step
from ottla.spark.pipelines.loading_tables import read_table
from ottla.spark.pipelines.sinks.loading import read_sink
from ottla.spark.pipelines.stores.settings import StorageSettings, read_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_SECTIONS: Final = ("source", "table", "step", "sink")
_KEYS: Final = ("name", "broker", "state", "checkpoint", "every", "kafka", "spark", "storage", *_SECTIONS)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VIEW_NAME: Final = re.compile(r"[A-Za-z]\w{0,99}")
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
DEFAULT_BROKER: Final = "localhost:9092"


def load_pipeline(file: Path, *, broker: str | None = None, kafka: Mapping[str, str] | None = None) -> Pipeline:
    """Read a pipeline's file; `broker` and `kafka` override its settings."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as refused:
        raise ConfigError(f"{file} cannot be read: {getattr(refused, 'strerror', None) or refused}") from None
    return parse_pipeline(text, file, os.environ, broker=broker, kafka=kafka)


def parse_pipeline(
    text: str,
    file: Path,
    environment: Mapping[str, str],
    *,
    broker: str | None = None,
    kafka: Mapping[str, str] | None = None,
) -> Pipeline:
    mistakes = Mistakes(file.name, text)
    given = _parse_toml(text, file, environment, mistakes)
    top = Fields({key: value for key, value in given.items() if key not in _SECTIONS}, (), mistakes)
    name = _name(top, file)
    folder = file.resolve().parent
    state = folder / top.text("state", f"{name}.state")
    storage = read_storage(top.inner("storage"), StorageSettings())
    context = FileContext(pipeline=name, folder=folder, storage=storage)
    sources = _each(given, "source", mistakes, lambda key, fields: read_source(key, fields, context))
    tables = _each(given, "table", mistakes, lambda key, fields: read_table(key, fields, folder))
    inputs = [*sources, *tables]
    steps = _each(given, "step", mistakes, lambda key, fields: read_step(key, fields, folder, inputs))
    sinks = _each(given, "sink", mistakes, lambda key, fields: read_sink(key, fields, [*sources, *steps], context))
    _check_whole(given, mistakes)
    check_columns(sources, steps.values(), sinks.values(), mistakes)
    pipeline = Pipeline(
        name=name,
        file=file,
        broker=broker or top.text("broker", DEFAULT_BROKER),
        state=state,
        checkpoint=_checkpoint(top, folder, state),
        sources=sources,
        tables=tables,
        steps=tuple(steps.values()),
        sinks=sinks,
        every_ms=top.duration_ms("every", 10_000),
        kafka=top.settings("kafka") | dict(kafka or {}),
        spark=top.settings("spark"),
    )
    if mistakes.found:
        raise ConfigError(mistakes.sentences())
    return pipeline


def _parse_toml(text: str, file: Path, environment: Mapping[str, str], mistakes: Mistakes) -> dict[str, Any]:
    """The tables of the file, with the values of environment variables."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise ConfigError(f"{file.name} is not valid TOML: {wrong}") from None
    given = cast("dict[str, Any]", _with_variables(given, (), environment, mistakes))
    for key in given:
        if key not in _KEYS:
            mistakes.add((key,), f"no such key{suggestion(key, _KEYS)}")
    return given


def _name(top: Fields, file: Path) -> str:
    name = top.text("name", file.stem)
    if not _NAME.fullmatch(name):
        top.wrong("name", f"{name!r} must be letters, digits, '.', '_' and '-', at most 100 of them")
    return name


def _checkpoint(top: Fields, folder: Path, state: Path) -> str:
    given = top.text("checkpoint", str(state / "checkpoint"))
    return given if "://" in given else str(folder / given)


def _each(
    given: Mapping[str, Any], section: str, mistakes: Mistakes, read: Callable[[str, Fields], Any]
) -> dict[str, Any]:
    tables = given.get(section, {})
    if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
        mistakes.add((section,), f"is written as tables with names: [{section}.NAME]")
        return {}
    found = {}
    for name, content in tables.items():
        fields = Fields(content, (section, name), mistakes)
        if not _VIEW_NAME.fullmatch(name):
            fields.wrong("", "a name begins with a letter and has only letters, digits and '_'")
        made = read(name, fields)
        if made is not None:
            found[name] = made
        fields.finish()
    return found


def _check_whole(given: Mapping[str, Any], mistakes: Mistakes) -> None:
    for section, what in (("source", "where records come from"), ("sink", "where rows go")):
        if not given.get(section):
            mistakes.add((), f"there is no [{section}.NAME], which says {what}")
    sections = [given.get(section, {}) for section in ("source", "table", "step")]
    names = [name for section in sections if isinstance(section, dict) for name in section]
    for name in {name for name in names if names.count(name) > 1}:
        mistakes.add((), f"the name {name} is there twice; sources, tables and steps are used by name")


def _with_variables(value: object, path: tuple[str, ...], environment: Mapping[str, str], mistakes: Mistakes) -> object:
    """The value with `${NAME}` replaced by environment variables, so that passwords need not be in the file."""
    if isinstance(value, dict):
        return {key: _with_variables(each, (*path, key), environment, mistakes) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_variables(each, path, environment, mistakes) for each in value]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        if match[1] not in environment:
            mistakes.add(path, f"the environment has no variable {match[1]}")
        return setting_text(environment.get(match[1], ""))

    return _VARIABLE.sub(replaced, value)
