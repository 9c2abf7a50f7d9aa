"""Merging of small files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.columns.arrow_types import arrow_schema, with_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.columns.evolution import Evolution
    from ottla.spark.pipelines.stores.files import FileInfo, Files


class DataFile(NamedTuple):
    name: str
    size: int
    columns: str
    """Only files with the same columns are merged."""


def small_files(files: Files, listed: Iterable[FileInfo], target_bytes: int) -> Iterator[DataFile]:
    """Small files that may be merged."""
    import pyarrow.parquet as pq

    for each in listed:
        if is_small(each.size, target_bytes):
            schema = pq.read_schema(files.source(each.name))
            yield DataFile(each.name, each.size, schema.remove_metadata().to_string())


def is_small(size: int, target_bytes: int) -> bool:
    """A file of at least half the target size is not merged."""
    return size * 2 < target_bytes


def groups_to_merge(files: Iterable[DataFile], target_bytes: int) -> Iterator[list[str]]:
    """Files of one folder that together have about the target size."""
    alike: dict[tuple[str, str], list[DataFile]] = {}
    for file in sorted(files):
        alike.setdefault((folder_of(file.name), file.columns), []).append(file)
    for each in alike.values():
        group: list[DataFile] = []
        for file in each:
            if sum(one.size for one in group) + file.size > target_bytes:
                yield from _worth_it(group)
                group = []
            group.append(file)
        yield from _worth_it(group)


def folder_of(name: str) -> str:
    """The folder with a trailing slash; empty for a file at the root."""
    return "".join(name.rpartition("/")[:2])


def _worth_it(group: list[DataFile]) -> list[list[str]]:
    return [[each.name for each in group]] if len(group) > 1 else []


def merge(files: Files, names: Sequence[str], into: str) -> None:
    """Copy one file after the other, so that at most one row group is in memory."""
    import pyarrow.parquet as pq

    with (
        files.sink(into) as sink,
        pq.ParquetWriter(sink, pq.read_schema(files.source(names[0])), compression="snappy") as writer,
    ):
        for name in names:
            with pq.ParquetFile(files.source(name)) as opened:
                for batch in opened.iter_batches(1 << 16):
                    writer.write_batch(batch.cast(writer.schema))


def rewrite_wider(files: Files, name: str, into: str, evolution: Evolution) -> bool:
    """Rewrite a file with wider column types; False if it already has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    have = pq.read_schema(files.source(name)).remove_metadata()
    wanted = arrow_schema(evolution.columns)
    wider = pa.schema([wanted.field(each.name) if each.name in evolution.widened else each for each in have])
    if wider.equals(have):
        return False
    with (
        files.sink(into) as sink,
        pq.ParquetWriter(sink, wider, compression="snappy") as writer,
        pq.ParquetFile(files.source(name)) as opened,
    ):
        for batch in opened.iter_batches(1 << 16):
            writer.write_batch(with_schema(batch, wider))
    return True
