"""`ottla log`: inspect the files of a partition, of Ottla or Kafka."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.confirming import confirm, with_yes_option
from ottla.cli.security.key_files import with_key_file
from ottla.cli.summaries import CommandGroup
from ottla.core.errors import ApiError, OttlaError
from ottla.core.sealing import Sealer
from ottla.records.compression import Compression
from ottla.records.reader import RecordReader
from ottla.storage import inspect
from ottla.storage.folder.folder_lock import LOCK, FolderLock
from ottla.storage.repair import damage_in
from ottla.storage.repair import repair as remove_damage

if TYPE_CHECKING:
    from ottla.core.keys import KeyRing
    from ottla.records.batch import BatchHeader
    from ottla.records.reader import Record
    from ottla.storage.repair import Lost
    from ottla.storage.segment_files.scan import Decrypt

FOLDER = click.argument("path", type=click.Path(exists=True, path_type=Path))


@click.group(cls=CommandGroup)
def log() -> None:
    """Inspect and repair the segment files of a partition."""


@log.command(
    epilog="""\b
Examples:
  ottla log dump data/orders-0
  ottla log dump data/orders-0 --from 1000 --max 10 --records
  ottla log dump data/orders-0 --keys /etc/ottla/keys
""",
)
@FOLDER
@with_key_file
@click.option("--from", "from_offset", default=0, show_default=True, help="First offset.")
@click.option("--max", "limit", type=click.IntRange(min=1), help="Stop after this many batches.")
@click.option("--records", is_flag=True, help="Include records.")
def dump(path: Path, keys: KeyRing | None, from_offset: int, limit: int | None, *, records: bool) -> None:
    """Dump the record batches of a partition folder or segment file."""
    shown = 0
    decrypting = Decrypting(keys)
    for file in _segments(path):
        try:
            for batch in inspect.batches(file, from_offset, decrypting.of(file)):
                if shown == limit:
                    return
                shown += 1
                click.echo(_batch_line(file, batch.position, batch.header))
                if records:
                    for record in RecordReader(batch.data, from_offset, with_control=True):
                        click.echo(_record_line(record))
        except ApiError as damaged:
            raise OttlaError(f"{file}: {damaged}; run `ottla log verify` for details") from None


@log.command(
    epilog="""\b
Examples:
  ottla log verify data
  ottla log verify data/orders-0
""",
)
@FOLDER
@with_key_file
def verify(path: Path, keys: KeyRing | None) -> None:
    """Verify every batch and index entry below a folder; exits with 1 on damage."""
    files = [file for folder in _partition_folders(path) for file in inspect.segment_files(folder)]
    if not files:
        raise OttlaError(f"there are no segment files in {path}")
    decrypting = Decrypting(keys)
    problems = [problem for file in files for problem in inspect.verify_segment(file, decrypting.of(file))]
    for problem in problems:
        click.echo(f"{problem.path}, byte {problem.position}: {problem.text}")
    if problems:
        raise OttlaError(f"{len(problems)} of the batches and index entries in {len(files)} segments are damaged")
    click.echo("1 segment is intact" if len(files) == 1 else f"{len(files)} segments are intact")


@log.command(
    epilog="""\b
Examples:
  ottla log repair data/orders-0
  ottla log repair data --yes
""",
)
@FOLDER
@with_key_file
@with_yes_option
def repair(path: Path, keys: KeyRing | None, *, yes: bool) -> None:
    """Drop the damaged batches of a partition, keep a copy of its damaged segments, and report what was lost.

    The broker must be stopped. In a cluster, delete the folder instead if another replica is in sync: it is copied
    again.
    """
    decrypting = Decrypting(keys)
    folders = [folder.absolute() for folder in _partition_folders(path)]
    with ExitStack() as stack:
        for data_folder in {folder.parent for folder in folders if (folder.parent / LOCK).exists()}:
            stack.callback(FolderLock(data_folder).release)
        damaged = {folder: damage_in(folder, decrypting.of) for folder in folders}
        damaged = {folder: lost for folder, lost in damaged.items() if lost}
        for lost in damaged.values():
            for each in lost:
                click.echo(_lost_line(each))
        if not damaged:
            click.echo(f"nothing in {path} is damaged")
            return
        confirm(f"Drop these from {len(damaged)} partitions? Copies of the damaged segments are kept.", yes=yes)
        for folder, lost in damaged.items():
            for kept in remove_damage(folder, lost):
                click.echo(f"the damaged segment is kept as {kept}")


def _lost_line(lost: Lost) -> str:
    end = "up to the end of the log" if lost.end is None else f"to {lost.end - 1}"
    place = f"{lost.path}, byte {lost.position}, {lost.size} bytes" if lost.size else str(lost.path.parent)
    return f"{place}: offsets {lost.first} {end} are lost: {lost.reason}"


class Decrypting:
    """A reader of segment files, with the given keys."""

    def __init__(self, keys: KeyRing | None) -> None:
        self._sealer = None if keys is None else Sealer(keys)

    def of(self, file: Path) -> Decrypt | None:
        if not inspect.is_encrypted(file):
            return None
        if self._sealer is None:
            raise OttlaError(f"{file} is encrypted: name its keys with --keys FILE")
        return inspect.cipher_for(file, self._sealer).open


def _segments(path: Path) -> list[Path]:
    files = inspect.segment_files(path)
    if not files:
        raise OttlaError(f"there are no segment files in {path}; name the folder of a partition, such as data/orders-0")
    return files


def _partition_folders(path: Path) -> list[Path]:
    if path.is_file() or inspect.segment_files(path):
        return [path]
    return sorted(folder for folder in path.iterdir() if folder.is_dir())


def _batch_line(file: Path, position: int, header: BatchHeader) -> str:
    kind = "control" if header.is_control else "transactional" if header.is_transactional else "data"
    parts = [
        f"{file.name}@{position}",
        f"offsets {header.base_offset}..{header.last_offset}",
        f"{header.record_count} records",
        f"{header.size} bytes",
        Compression(header.compression).name.lower(),
        kind,
        f"epoch {header.leader_epoch}",
    ]
    if header.producer_id >= 0:
        parts.append(f"producer {header.producer_id}/{header.producer_epoch} at {header.base_sequence}")
    return "  ".join(parts)


def _record_line(record: Record) -> str:
    headers = "".join(f"  {name}={_shown(value)}" for name, value in record.headers)
    return f"  {record.offset}  {record.timestamp}  {_shown(record.key)}: {_shown(record.value)}{headers}"


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() else repr(text)
