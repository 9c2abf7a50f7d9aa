"""`[sink.NAME]`: where rows go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.spark.pipelines.changes.rules import MERGING_KINDS
from ottla.spark.pipelines.definition import DATABASE_KINDS, EVOLUTION_POLICIES, SINK_KINDS, TABLE_KINDS, Sink
from ottla.spark.pipelines.fields import suggestion
from ottla.spark.pipelines.loading_tables import read_jars
from ottla.spark.pipelines.stores.addresses import is_address, why_wrong
from ottla.spark.pipelines.stores.settings import read_storage

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.stores.settings import StorageSettings

_MODES: Final = ("append", "update", "complete")
_NEEDED: Final = {
    "parquet": ("path",),
    "delta": ("path",),
    "iceberg": ("path", "table"),
    "topic": ("topic",),
    "postgresql": ("url", "table"),
    "sqlite": ("path", "table"),
    "jdbc": ("url", "table"),
    "console": (),
}
_FILES: Final = ("path", "partition_by", "compact_every", "target_file_bytes", "evolution", "storage")
_MERGED: Final = ("key", "delete_when", "order_by", "dead_letters")
_TAKEN: Final = {
    "parquet": _FILES,
    "delta": (*_FILES, *_MERGED, "keep_versions"),
    "iceberg": (*_FILES, *_MERGED, "keep_versions", "table", "catalog"),
    "topic": ("topic", "key", "value", "delete_when"),
    "postgresql": ("url", "table", *_MERGED, "evolution"),
    "sqlite": ("path", "table", *_MERGED, "evolution"),
    "jdbc": ("url", "table", *_MERGED, "evolution", "options", "jars"),
    "console": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a sink takes from the rest of the file."""

    pipeline: str
    folder: Path
    storage: StorageSettings
    known: list[str]
    """Sources and steps, whose rows it may take."""


def read_sink(name: str, fields: Fields, around: Around) -> Sink:
    known = around.known
    kind = fields.one_of("kind", SINK_KINDS, None)
    of = fields.text("from", known[-1] if known else "")
    if of and of not in known:
        fields.wrong("from", f"there is no source or step {of}{suggestion(of, known)}")
    path = fields.text("path")
    sink = Sink(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        of=of,
        mode=fields.one_of("mode", _MODES, _usual_mode(kind, has_key=fields.has("key"))),  # type: ignore[arg-type]
        path=_placed(path, around.folder) if path else "",
        table=fields.text("table"),
        partition_by=fields.names("partition_by"),
        compact_every=fields.number("compact_every", None),
        target_file_bytes=fields.number("target_file_bytes", 128 << 20, least=1024) or 0,
        topic=fields.text("topic"),
        key=fields.names("key"),
        delete_when=fields.text("delete_when") or None,
        order_by=fields.text("order_by") or None,
        value=fields.text("value") or None,
        url=fields.text("url"),
        options=fields.settings("options"),
        jars=read_jars(fields, around.folder),
        catalog=fields.settings("catalog"),
        storage=read_storage(fields.inner("storage"), around.storage),
        keep_versions=fields.number("keep_versions", None),
        dead_letters=fields.text("dead_letters", f"{around.pipeline}.dead-letters"),
        evolution=fields.one_of("evolution", EVOLUTION_POLICIES, "add"),  # type: ignore[arg-type]
    )
    if fields.text("kind") == kind:  # nothing is known of what one of another kind needs
        _check_kind(kind, fields)
        _check_sense(sink, fields)
        _check_merge(sink, fields)
        _check_jdbc(sink, fields)
    return sink


def _usual_mode(kind: str, *, has_key: bool) -> str:
    """Rows with a key are replaced as they change; a console shows them as they change."""
    return "update" if (kind in MERGING_KINDS and has_key) or kind == "console" else "append"


def _check_kind(kind: str, fields: Fields) -> None:
    for key in _NEEDED[kind]:
        if not fields.has(key):
            fields.wrong("", f"a {kind} sink needs {key}")
    for key in {each for taken in _TAKEN.values() for each in taken} - set(_TAKEN[kind]):
        if fields.has(key):
            hint = "; to replace rows by key, use delta or iceberg" if (kind, key) == ("parquet", "key") else ""
            fields.wrong(key, f"a {kind} sink has no {key}{hint}")


def _check_sense(sink: Sink, fields: Fields) -> None:
    if sink.kind in TABLE_KINDS and sink.mode != "append" and not sink.key:
        way = (
            "set key, so that rows are replaced"
            if sink.kind in MERGING_KINDS
            else "use a delta or iceberg sink with a key"
        )
        fields.wrong("mode", f"a {sink.kind} table without a key can only grow (append); {way}")
    elif sink.kind in TABLE_KINDS and sink.mode == "complete":
        fields.wrong(
            "mode", f"a {sink.kind} table is not rewritten as a whole; use update, or send the rows to a database"
        )
    if sink.kind in DATABASE_KINDS and sink.mode != "append" and not sink.key:
        fields.wrong("mode", f"{sink.mode} needs a key, so that rows can be replaced")
    if sink.kind == "topic" and len(sink.key) > 1:
        fields.wrong("key", "a record has one key; name one column")
    _check_place(sink, fields)
    if sink.kind == "iceberg" and sink.table and sink.table.count(".") != 1:
        fields.wrong("table", f"{sink.table!r} must be a namespace and a name, such as shop.orders")


def _check_jdbc(sink: Sink, fields: Fields) -> None:
    if sink.kind == "jdbc" and not sink.url.startswith("jdbc:"):
        fields.wrong("url", f"{sink.url.partition(':')[0]!r}… must begin with jdbc:, such as jdbc:mysql://host/db")


def _placed(path: str, folder: Path) -> str:
    return path.rstrip("/") if is_address(path) else str(folder / path)


def _check_place(sink: Sink, fields: Fields) -> None:
    if is_address(sink.path) and sink.kind not in TABLE_KINDS:
        fields.wrong("path", f"a {sink.kind} sink writes a file on this machine; give its path without a scheme")
    elif is_address(sink.path) and (wrong := why_wrong(sink.path)) is not None:
        fields.wrong("path", wrong)
    elif sink.kind == "iceberg" and is_address(sink.path) and not sink.catalog:
        fields.wrong(
            "catalog",
            "a table in an object store needs one, such as "
            '{ type = "rest", uri = "https://…" }, or type sql, glue or hive',
        )


def _check_merge(sink: Sink, fields: Fields) -> None:
    for what in ("delete_when", "order_by"):
        if fields.has(what) and not sink.key:
            fields.wrong(what, "needs key, by which rows are found")
        if fields.has(what) and sink.mode == "complete":
            fields.wrong(what, "cannot be used with mode complete, which rewrites all rows")
    if sink.kind in TABLE_KINDS and fields.has("dead_letters") and not sink.key:
        fields.wrong("dead_letters", f"a {sink.kind} sink refuses rows only if it has a key")
    if len(set(sink.key)) < len(sink.key):
        fields.wrong("key", "names a column twice")
    for what, names in (("key", sink.key), ("order_by", (sink.order_by,) if sink.order_by else ())):
        for name in names:
            if name.startswith("_") and sink.kind in MERGING_KINDS:
                fields.wrong(what, f"{name} is not stored; select it under another name: SELECT {name} AS …")
    if sink.order_by in sink.key:
        fields.wrong("order_by", f"{sink.order_by} is part of the key, and the same for all rows that it would compare")
