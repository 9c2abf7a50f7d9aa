"""Debezium records: the format of their envelope, and which of them do not change a row. Pure rules.

The envelope has the row before and after the change, with or without its schema beside it (`payload`). Debezium's
transformation ExtractNewRecordState leaves the row alone, and may add `__deleted` and `__op`: flattened, we say.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.pipelines.faults import JsonFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WRAPPER: Final = "payload"
UPSERTS: Final = ("c", "u", "r")
"""Created, updated, and read by a snapshot."""
DELETION: Final = "d"
_TRUNCATION: Final = "t"
CHANGE_COLUMNS: Final = ("_deleted", "_op", "_changed_at")
"""Additional columns of a row."""


def envelope_ddl(row: str, *, has_wrapper: bool, is_flattened: bool) -> str:
    """The columns of a record, for a row with these columns."""
    if is_flattened:
        inner = f"{row}, __deleted string, __op string, __source_ts_ms bigint, __ts_ms bigint"
    else:
        inner = f"before struct<{row}>, after struct<{row}>, op string, ts_ms bigint, source struct<ts_ms:bigint>"
    return f"{inner}, {WRAPPER} struct<{inner}>" if has_wrapper else inner


def unwrapped(value: bytes | None) -> dict[str, Any] | None:
    """The envelope of a record, or the row of a flattened one."""
    try:
        content = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    if isinstance(content, dict) and isinstance(content.get(WRAPPER), dict) and "schema" in content:
        content = content[WRAPPER]
    return content if isinstance(content, dict) else None


def is_envelope(value: bytes | None) -> bool:
    content = unwrapped(value)
    return content is not None and isinstance(content.get("op"), str) and ("after" in content or "before" in content)


def rows_in(values: Iterable[bytes | None], *, is_flattened: bool) -> list[bytes]:
    """The rows of records, as JSON: for a schema to be inferred from them."""
    found: list[bytes] = []
    for content in map(unwrapped, values):
        if content is None:
            continue
        if is_flattened:
            rows: list[Any] = [{name: each for name, each in content.items() if not name.startswith("__")}]
        else:
            rows = [content.get("after"), content.get("before")]
        found += [json.dumps(row).encode() for row in rows if isinstance(row, dict)]
    return found


class DebeziumFault:
    """A function for Spark's workers: the value's bytes in, the reason out. `nulls` as for JsonFault."""

    def __init__(self, ddl: str, *, is_flattened: bool) -> None:
        self._ddl = ddl
        self._is_flattened = is_flattened

    def __call__(self, value: bytes | None, nulls: Sequence[str]) -> str:
        content = unwrapped(value)
        if content is None:
            return JsonFault(self._ddl)(value, nulls)
        if self._is_flattened:
            return JsonFault(self._ddl)(json.dumps(content).encode(), nulls)
        reason = _why_no_change(content)
        if reason is not None:
            return reason
        name = "before" if content["op"] == DELETION else "after"
        return f"{name}: {JsonFault(self._ddl)(json.dumps(content.get(name)).encode(), nulls)}"


def _why_no_change(content: dict[str, Any]) -> str | None:
    op = content.get("op")
    if op is None:
        return "not a change event of Debezium: it has no op (for flattened records set flattened = true)"
    if op == _TRUNCATION:
        return "the table was truncated at its source; its rows are not deleted here"
    if op not in (*UPSERTS, DELETION):
        return f"op {op!r} is not a change of a row"
    if op in UPSERTS and content.get("after") is None:
        return f"op {op!r} without after"
    return None
