"""Part of a topic as one file: a JSON header line, then one line per record, in timestamp order.

Keys, values and header values are base64, so that every record is restored exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO


class Head(msgspec.Struct, frozen=True, kw_only=True):
    ottla_recording: Literal[1] = 1
    """The version of the format."""
    topic: str
    partitions: int


class Recorded(msgspec.Struct, frozen=True, array_like=True):
    partition: int
    offset: int
    """The original offset; a replayed record gets another one."""
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


_HEAD: Final = msgspec.json.Decoder(Head)
_RECORD: Final = msgspec.json.Decoder(Recorded)


def write_line(out: BinaryIO, line: Head | Recorded) -> None:
    out.write(msgspec.json.encode(line) + b"\n")


def read_head(path: Path) -> Head:
    with path.open("rb") as file:
        try:
            return _HEAD.decode(file.readline())
        except msgspec.DecodeError as wrong:
            raise ConfigError(f"{path} is not a valid recording: {wrong}") from None


def read_records(path: Path) -> Iterator[Recorded]:
    with path.open("rb") as file:
        file.readline()
        for number, line in enumerate(file, 2):
            try:
                yield _RECORD.decode(line)
            except msgspec.DecodeError as wrong:
                raise ConfigError(f"{path}, line {number}: {wrong}") from None


def due_after_s(recorded: Recorded, first: Recorded, speed: float) -> float:
    """How long after the first record to send this one; with a speed of 0, at once."""
    return max(recorded.timestamp_ms - first.timestamp_ms, 0) / 1000 / speed if speed else 0.0
