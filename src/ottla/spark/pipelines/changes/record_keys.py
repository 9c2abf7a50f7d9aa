"""The columns in a record's key, which is JSON, plain or with its schema, or the text of one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.columns.ddl import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

_WRAPPER = "payload"


def key_columns(types: Mapping[str, str]) -> dict[str, Column]:
    """The columns of the key; null if it lacks one."""
    text = F.col("key").cast("string")
    row = ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())
    if _WRAPPER in types:
        parsed = F.from_json(text, row)
        return {name: parsed.getField(name) for name in types}
    parsed = F.from_json(text, f"{row}, {_WRAPPER} struct<{row}>")
    found = {name: F.coalesce(parsed.getField(_WRAPPER).getField(name), parsed.getField(name)) for name in types}
    if len(types) == 1:
        [(name, kind)] = types.items()
        unquoted = F.regexp_replace(text, '^"(.*)"$', "$1")
        alone = F.when(~F.ltrim(text).startswith("{"), unquoted).try_cast(kind)
        found[name] = F.coalesce(found[name], alone)
    return found
