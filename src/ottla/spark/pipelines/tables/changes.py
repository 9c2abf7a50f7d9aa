"""The changes of a micro-batch as Arrow in memory: at most one per key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.pipelines.changes.rules import DELETE

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Changes:
    rows: pa.Table
    """The columns of the table and DELETE."""

    def without_key(self, key: Sequence[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.rows.filter(self._lacks(key)).drop_columns([DELETE]).to_pylist()
        return found

    def with_key(self, key: Sequence[str]) -> Changes:
        return Changes(self.rows.filter(pc.invert(self._lacks(key))))

    def upserts(self) -> pa.Table:
        return self.rows.filter(pc.invert(self.rows[DELETE])).drop_columns([DELETE])

    def _lacks(self, key: Sequence[str]) -> pa.ChunkedArray:
        lacking = pc.is_null(self.rows[key[0]])
        for name in key[1:]:
            lacking = pc.or_(lacking, pc.is_null(self.rows[name]))
        return lacking
