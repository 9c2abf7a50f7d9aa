"""Encrypted queues: each message is encrypted and bound to its position.

An encrypted message has a lower-case type, `s` or `o`; the rest of its record is unchanged.
Q_info_keys holds a check value of each key that the queue needs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ottla.core.sealing import SEAL_BYTES, BrokenSeal, Sealer, UnknownKey, check_value, is_check_value
from ottla.queue.errors import NotReady
from ottla.queue.files import read_small, replace
from ottla.queue.folder import QueueFolder
from ottla.queue.record import SEALED

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.core.keys import KeyRing

_MAX_FILE_BYTES: Final = 1 << 20


class MessageSeal:
    """Encrypts and decrypts the messages of one queue."""

    extra_bytes = SEAL_BYTES

    def __init__(self, queue: str, ring: KeyRing) -> None:
        self._queue = queue
        self._sealer = Sealer(ring)

    def seal(self, kind: int, body: bytes, place: tuple[int, int, int]) -> tuple[int, bytes]:
        """The type and body to write at this position: part, offset and number."""
        kind |= SEALED
        return kind, self._sealer.seal(body, self._bound_to(kind, place))

    def open(self, kind: int, body: bytes, place: tuple[int, int, int]) -> bytes | None:
        """The plaintext; None if authentication fails."""
        try:
            return self._sealer.open(body, self._bound_to(kind, place))
        except UnknownKey as unknown:
            raise NotReady(f"a message of queue {self._queue} cannot be read: {unknown}") from None
        except BrokenSeal:
            return None

    def _bound_to(self, kind: int, place: tuple[int, int, int]) -> bytes:
        part, offset, number = place
        return f"{part}/{offset}/{number}/{chr(kind)}/{self._queue}".encode()


def open_folder(base: Path, name: str, ring: KeyRing | None) -> QueueFolder:
    """The files of a queue, with these keys; raises NotReady if it needs others."""
    folder = QueueFolder(base, name, None if ring is None else MessageSeal(name, ring))
    check_keys(folder.info_keys, name, ring)
    return folder


def check_keys(path: Path, queue: str, ring: KeyRing | None) -> None:
    """Raises NotReady unless these are the keys of the queue."""
    for key_id, value in _noted(path, queue).items():
        if ring is None:
            raise NotReady(f"queue {queue} is encrypted; pass its keys")
        if key_id not in ring.keys:
            raise NotReady(f"queue {queue} is encrypted with key {key_id}, which is missing from the given keys")
        if not is_check_value(ring.keys[key_id], value):
            raise NotReady(f"queue {queue} is encrypted with a different key {key_id}")


def note_keys(path: Path, queue: str, ring: KeyRing, *, is_durable: bool) -> None:
    """Record the newest key before its first use."""
    noted = _noted(path, queue)
    if ring.newest not in noted:
        checks = {str(key_id): value for key_id, value in noted.items()}
        checks[str(ring.newest)] = check_value(ring.keys[ring.newest])
        replace(path, json.dumps({"keys": checks}).encode() + b"\n", is_durable=is_durable)


def _noted(path: Path, queue: str) -> dict[int, str]:
    content = read_small(path, _MAX_FILE_BYTES)
    if content is None:
        return {}
    try:
        return {int(key_id): str(value) for key_id, value in json.loads(content)["keys"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise NotReady(f"{path} is damaged; it lists the keys of queue {queue}") from None
