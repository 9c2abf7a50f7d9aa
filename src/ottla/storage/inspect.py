"""Inspects a partition's files without opening them as a log: nothing is locked, changed or repaired.

If a broker is writing to the files, data behind the last complete batch is not corruption yet.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ottla.core.errors import ApiError, CorruptMessage, DataDirError
from ottla.records.batch import check_batch
from ottla.storage.cipher import KEY_ID_END, BatchCipher, BatchOwner, key_id_of_batch
from ottla.storage.files import ENCRYPTED_LOG, LOG, OFFSET_INDEX, TIME_INDEX, offset_in_name
from ottla.storage.folder.checkpoints import read_topic_id
from ottla.storage.segment_files.index_file import OFFSET_ENTRY, TIME_ENTRY
from ottla.storage.segment_files.read_buffers import ReadBuffers
from ottla.storage.segment_files.scan import FoundBatch, scan_batches, scan_headers

if TYPE_CHECKING:
    import struct
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.core.sealing import Sealer
    from ottla.storage.segment_files.scan import Decrypt


class Problem(NamedTuple):
    path: Path
    position: int
    text: str


def segment_files(path: Path) -> list[Path]:
    """The segment files in a partition's folder, oldest first; or the given file."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.iterdir() if base_offset(file) is not None)


def is_encrypted(file: Path) -> bool:
    return file.name.endswith(ENCRYPTED_LOG)


def base_offset(file: Path) -> int | None:
    return offset_in_name(file.name, ENCRYPTED_LOG if is_encrypted(file) else LOG)


def cipher_for(file: Path, sealer: Sealer) -> BatchCipher:
    """The cipher of a segment file; raises DataDirError if its folder's identity is unknown."""
    folder = file.absolute().parent
    topic_id = read_topic_id(folder)
    partition = folder.name.rpartition("-")[2]
    if topic_id is None or not partition.isdigit():
        raise DataDirError(f"{folder} has no topic id, which decryption needs")
    cipher = BatchCipher(sealer, BatchOwner(topic_id, int(partition)), ReadBuffers())
    cipher.find_own_keys(folder)
    return cipher


def key_id_of_segment(file: Path) -> int:
    """The key id of the first batch; 0 if unencrypted or empty."""
    if not is_encrypted(file):
        return 0
    with file.open("rb") as opened:
        start = opened.read(KEY_ID_END)
    return key_id_of_batch(start) if len(start) == KEY_ID_END else 0


def batches(path: Path, from_offset: int = 0, decrypt: Decrypt | None = None) -> Iterator[FoundBatch]:
    """The batches of one segment file from `from_offset` on, each verified."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for batch in scan_batches(fd, 0, os.fstat(fd).st_size, decrypt):
            if batch.header.last_offset >= from_offset:
                yield batch
    finally:
        os.close(fd)


def verify_segment(path: Path, decrypt: Decrypt | None = None) -> Iterator[Problem]:
    """The problems of a segment file and its indexes. A corrupt batch does not hide later ones."""
    last_offsets: dict[int, int] = {}
    max_timestamps: dict[int, int] = {}
    first_offset = next_offset = base_offset(path) or 0
    end = 0
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for position, header in scan_headers(fd, 0, os.fstat(fd).st_size):
            try:
                if header.base_offset < next_offset:
                    raise CorruptMessage(f"found offset {header.base_offset}, expected {next_offset}")
                stored = os.pread(fd, header.size, position)
                check_batch(stored)
                if decrypt is not None:
                    decrypt(memoryview(stored))
            except ApiError as damaged:
                yield Problem(path, position, str(damaged))
            next_offset = header.next_offset
            end = position + header.size
            last_offsets[position] = header.last_offset
            max_timestamps[header.last_offset] = header.max_timestamp
    except ApiError as damaged:
        yield Problem(path, end, str(damaged))
    finally:
        os.close(fd)
    for number, (relative, position) in _entries(path.with_suffix(OFFSET_INDEX), OFFSET_ENTRY):
        if last_offsets.get(position) != first_offset + relative:
            text = f"entry {number}: no batch at {position} ends with offset {first_offset + relative}"
            yield Problem(path.with_suffix(OFFSET_INDEX), number * OFFSET_ENTRY.size, text)
    for number, (timestamp, relative) in _entries(path.with_suffix(TIME_INDEX), TIME_ENTRY):
        if max_timestamps.get(first_offset + relative) != timestamp:
            text = f"entry {number}: no batch with timestamp {timestamp} ends with offset {first_offset + relative}"
            yield Problem(path.with_suffix(TIME_INDEX), number * TIME_ENTRY.size, text)


def _entries(path: Path, layout: struct.Struct) -> Iterator[tuple[int, tuple[int, int]]]:
    """The entries of an index file, without the preallocated zeros of a running Kafka broker."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data[: len(data) // layout.size * layout.size]
    for number, (first, second) in enumerate(layout.iter_unpack(whole)):
        if first == second == 0:
            return
        yield number, (first, second)
