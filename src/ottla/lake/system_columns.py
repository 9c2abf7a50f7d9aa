"""Columns that every table has before those of the values. Pure rules."""

from __future__ import annotations

from typing import Final

PARTITION: Final = "_partition"
OFFSET: Final = "_offset"
TIMESTAMP: Final = "_timestamp"
KEY: Final = "_key"
HEADERS: Final = "_headers"
VALUE: Final = "value"
"""The only other column of a table of raw values."""
ERROR: Final = "_error"
"""In tables of dead letters: why the value could not be decoded."""

SYSTEM_COLUMNS: Final = (PARTITION, OFFSET, TIMESTAMP, KEY, HEADERS)


def column_name(field: str) -> str:
    """The column of a value's field: the same name, with one more underscore if it could be a system column's."""
    return f"_{field}" if field[:1] == "_" and f"_{field.lstrip('_').lower()}" in SYSTEM_COLUMNS else field
