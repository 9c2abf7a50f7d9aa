"""Whether a changed pipeline may continue from its checkpoint. Pure rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ottla.columns.types import shown
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.columns.types import Struct
    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.sinks.sink import Sink


_PLAIN: Final = re.compile(r"Project \[\w+(?:, \w+)*\]")
_CARRIED: Final = re.compile(r"Project \[(?:\w+, )+(?=from_json\(|from_csv\()")


def fingerprint(pipeline: Pipeline, sink: Sink, stateful: Sequence[str] | None, columns: Struct) -> dict[str, Any]:
    """The properties that must not change while a checkpoint is used. `stateful` is None if it is not known."""
    return {
        "sources": list(pipeline.sources),
        "kind": sink.kind,
        # As written in the file: a folder with file, state and tables may be moved as a whole.
        "place": sink.place.replace(f"{pipeline.file.resolve().parent}/", ""),
        **sink.fingerprint(),
        "mode": sink.mode if stateful else "",
        "stateful": None if stateful is None else list(stateful),
        # The rules of evolution decide whether the table can follow.
        "columns": {field.name: shown(field.type) for field in columns.fields},
    }


def refuse_mismatch(sink: str, before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> None:
    """Raises with the reason if the checkpoint cannot be continued."""
    reason = None if before is None else _reason(before, now)
    if reason is not None:
        raise ConfigError(
            f"[sink.{sink}]: the checkpoint is incompatible: {reason}. "
            "Undo the change, or give the sink another name and place to start over"
        )


def _reason(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    if before["sources"] != now["sources"]:
        return (
            f"it was made with the sources {', '.join(before['sources'])} in this order, now with "
            f"{', '.join(now['sources'])}; Spark keeps their offsets by position"
        )
    for key, what in (("kind", "kind of sink"), ("place", "place"), ("partition_by", "partitioning")):
        if before[key] != now[key]:
            return f"the {what} changed from {_shown(before[key])} to {_shown(now[key])}; existing data is not moved"
    if before.get("key", []) != now["key"]:
        was, is_now = _shown(before.get("key", [])), _shown(now["key"])
        return f"the key changed from {was} to {is_now}; existing rows may share a key"
    if before["mode"] and now["mode"] and before["mode"] != now["mode"]:
        return f"the mode changed from {before['mode']} to {now['mode']}"
    if before["stateful"] is None or now["stateful"] is None:
        return None
    return _state_reason(_compared(before["stateful"]), _compared(now["stateful"]))


def with_known_state(before: Mapping[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """The fingerprint to store: a run that does not know the state keeps the one of an earlier run."""
    if before is None or now["stateful"] is not None:
        return now
    return {**now, "mode": before["mode"], "stateful": before["stateful"]}


def _compared(parts: Sequence[str]) -> list[str]:
    """Without columns that are only passed through, and projections of only these: state does not depend on them."""
    plans = (" <- ".join(each for each in part.split(" <- ") if not _PLAIN.fullmatch(each)) for part in parts)
    return [_CARRIED.sub("Project [", part) for part in plans]


def _state_reason(before: Sequence[str], now: Sequence[str]) -> str | None:
    if before == now:
        return None
    if not before:
        return f"stateful steps were added ({_operators(now)}), whose state would lack the records read so far"
    if not now:
        return f"stateful steps were removed ({_operators(before)}), whose state would be lost"
    if _operators(before) != _operators(now):
        return f"the stateful steps changed from {_operators(before)} to {_operators(now)}"
    changed = next((one, other) for one, other in zip(before, now, strict=True) if one != other)
    return f"the state of {_operators(changed[:1])} was made with other keys or functions: {_difference(*changed)}"


def _operators(parts: Sequence[str]) -> str:
    return ", ".join(re.match(r"\w*", each)[0] for each in parts)  # type: ignore[index]  # it matches anything


def _difference(before: str, now: str) -> str:
    at = next((n for n, (one, other) in enumerate(zip(before, now, strict=False)) if one != other), 0)
    begin = max(0, at - 40)
    return f"…{before[begin : at + 40]}… became …{now[begin : at + 40]}…"


def _shown(value: object) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)
