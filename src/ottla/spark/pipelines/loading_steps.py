"""`[step.NAME]`: transformations in SQL or Python."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from ottla.columns.ddl import columns
from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.definition import Deduplication, PythonFunction, RowFunction, Step

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.spark.pipelines.fields import Fields

_WAYS: Final = ("sql", "sql_file", "python", "arrow", "pandas", "deduplicate")


def read_step(name: str, fields: Fields, folder: Path, known: list[str]) -> Step:
    """Read a step; later steps may use its name."""
    given = [way for way in _WAYS if fields.has(way)]
    if len(given) != 1:
        fields.wrong("", f"needs exactly one of {', '.join(_WAYS)}; it has {' and '.join(given) or 'none'}")
    step = Step(
        name=name,
        sql=_sql(fields, folder),
        python=_python(fields, folder, "python"),
        deduplicate=_deduplicate(fields, known),
        rows=_rows(fields, folder, known),
    )
    known.append(name)
    return step


def _sql(fields: Fields, folder: Path) -> str | None:
    text = fields.text("sql")
    file_name = fields.text("sql_file")
    if file_name:
        try:
            text = (folder / file_name).read_text("utf-8")
        except OSError as refused:
            fields.wrong("sql_file", f"{file_name} cannot be read: {refused.strerror}")
            return None
    text = text.strip().removesuffix(";")
    if (fields.has("sql") or file_name) and not text:
        fields.wrong("sql" if fields.has("sql") else "sql_file", "is empty")
    return text or None


def _rows(fields: Fields, folder: Path, known: list[str]) -> RowFunction | None:
    kind = "pandas" if fields.has("pandas") else "arrow"
    inner = fields.inner(kind)
    if inner is None:
        return None
    of = inner.text("from", needed=True)
    schema = inner.text("schema", needed=True)
    function = _python(inner, folder, "function", needed=True)
    if of and of not in known:
        inner.wrong("from", f"there is no source or step {of} before this one{suggestion(of, known)}")
    try:
        columns(schema)
    except ConfigError as wrong:
        inner.wrong("schema", str(wrong))
    inner.finish()
    if function is None:
        return None
    return RowFunction(of=of, function=function, schema=schema, is_pandas=kind == "pandas")


def _python(fields: Fields, folder: Path, key: str, *, needed: bool = False) -> PythonFunction | None:
    text = fields.text(key, needed=needed)
    if not text:
        return None
    file_name, colon, function = text.partition(":")
    if not colon or not file_name.endswith(".py") or not function.isidentifier():
        fields.wrong(key, f"{text!r} must be a file and a function in it, such as steps.py:enrich")
        return None
    file = folder / file_name
    try:
        tree = ast.parse(file.read_text("utf-8"), file_name)
    except OSError as refused:
        fields.wrong(key, f"{file_name} cannot be read: {refused.strerror}")
        return None
    except SyntaxError as wrong:
        fields.wrong(key, f"{file_name}, line {wrong.lineno}: {wrong.msg}")
        return None
    defined = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
    if function not in defined:
        fields.wrong(key, f"{file_name} has no function {function}{suggestion(function, defined)}")
    return PythonFunction(file=file, function=function)


def _deduplicate(fields: Fields, known: list[str]) -> Deduplication | None:
    inner = fields.inner("deduplicate")
    if inner is None:
        return None
    of = inner.text("from", needed=True)
    keys = inner.names("keys")
    is_within = inner.truth("within_watermark", default=True)
    if of and of not in known:
        inner.wrong("from", f"there is no source or step {of} before this one{suggestion(of, known)}")
    if not keys:
        inner.wrong("keys", "needs the columns that identify a row")
    inner.finish()
    return Deduplication(of=of, keys=keys, is_within_watermark=is_within)
