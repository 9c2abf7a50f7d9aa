"""`[sink.NAME]`: from the table of the file to a sink of its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.keys import Incomplete, key_names, read_keys
from ottla.spark.pipelines.plugins import UnknownPlugin
from ottla.spark.pipelines.sinks.registry import SINKS
from ottla.spark.pipelines.sinks.sink import Mode, Sink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.keys import FileContext

_COMMON: Final = ("name", "of", "mode")
"""Fields of all kinds: `of` is `from` in the file, and `name` the name of its table."""


def read_sink(name: str, fields: Fields, known: Sequence[str], context: FileContext) -> Sink | None:
    """None if the mistakes, which are reported, leave no sink. `known` are the sources and steps."""
    kind = _kind(fields)
    of = fields.text("from", known[-1] if known else "")
    if of and of not in known:
        fields.wrong("from", f"there is no source or step {of}{suggestion(of, known)}")
    usual = "append" if kind is None else kind.default_mode(has_key=fields.has("key"))
    mode = fields.one_of("mode", get_args(Mode), usual)
    if kind is None:
        return None
    what = f"a {kind.__struct_config__.tag} sink"
    _report_keys_of_others(kind, what, fields)
    try:
        values = read_keys(kind, fields, context, skipped=_COMMON, what=what)
    except Incomplete:
        return None
    sink = kind(name=name, of=of, mode=mode, **values)  # type: ignore[arg-type]
    sink.check(fields)
    return sink


def _kind(fields: Fields) -> type[Sink] | None:
    name = fields.text("kind", needed=True)
    if not name:
        fields.know(*_all_keys())
        return None
    try:
        found = SINKS.find(name)
        key_names(found)
    except ConfigError as refused:
        fields.wrong("kind", str(refused))
        fields.know(*_all_keys())
        if not isinstance(refused, UnknownPlugin):
            fields.know_all()
        return None
    return found


def _all_keys() -> set[str]:
    """Of all built-in kinds."""
    return {key for kind in SINKS.built_in() for key in key_names(kind) if key not in _COMMON}


def _report_keys_of_others(kind: type[Sink], what: str, fields: Fields) -> None:
    foreign = set(fields.keys) - {*key_names(kind), "kind", "from"}
    if not foreign:
        return
    for key in foreign & _all_keys():
        hint = f"; {kind.hints[key]}" if key in kind.hints else ""
        fields.wrong(key, f"{what} has no {key}{hint}")
        fields.know(key)
