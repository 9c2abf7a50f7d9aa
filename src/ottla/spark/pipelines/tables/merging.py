"""Which small files become one, and making one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


class DataFile(NamedTuple):
    path: Path
    size: int
    columns: str
    """Only files with the same columns are merged."""


def data_file(path: Path) -> DataFile:
    import pyarrow.parquet as pq

    return DataFile(path, path.stat().st_size, pq.read_schema(path).remove_metadata().to_string())


def groups_to_merge(files: Iterable[DataFile], target_bytes: int) -> Iterator[list[Path]]:
    """Files of one folder that come to about the target together; those that are half as large already stay."""
    alike: dict[tuple[Path, str], list[DataFile]] = {}
    for file in sorted(files):
        if file.size * 2 < target_bytes:
            alike.setdefault((file.path.parent, file.columns), []).append(file)
    for each in alike.values():
        group: list[DataFile] = []
        for file in each:
            if sum(one.size for one in group) + file.size > target_bytes:
                yield from _worth_it(group)
                group = []
            group.append(file)
        yield from _worth_it(group)


def _worth_it(group: list[DataFile]) -> list[list[Path]]:
    return [[each.path for each in group]] if len(group) > 1 else []


def merge(files: Sequence[Path], into: Path) -> None:
    """One after the other, so that memory holds no more than a row group."""
    import pyarrow.parquet as pq

    into.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(into, pq.read_schema(files[0]), compression="snappy") as writer:
        for file in files:
            with pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches(1 << 16):
                    writer.write_batch(batch.cast(writer.schema))
