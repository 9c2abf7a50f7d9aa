"""Keys, and logs that are encrypted with them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from ottla.core.ids import TopicId
from ottla.core.keys import KeyRing
from ottla.core.sealing import Sealer
from ottla.storage.cipher import BatchCipher, BatchOwner
from ottla.storage.segment_files.read_buffers import ReadBuffers

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = TopicId(UUID(int=7))
ONE_KEY = KeyRing({1: b"1" * 32})
TWO_KEYS = KeyRing({1: b"1" * 32, 2: b"2" * 32})
OTHER_KEY = KeyRing({1: b"x" * 32})


def cipher(
    ring: KeyRing = ONE_KEY, topic_id: TopicId = TOPIC, partition: int = 0, *, allows_plain: bool = True
) -> BatchCipher:
    return BatchCipher(Sealer(ring), BatchOwner(topic_id, partition), ReadBuffers(), allows_plain=allows_plain)


def files_with(marker: bytes, folder: Path) -> list[str]:
    """The files below this folder that hold these bytes, or are named by them."""
    everything = sorted(path for path in folder.rglob("*") if path.is_file())
    assert everything, f"there is nothing in {folder}"
    return [path.name for path in everything if marker in path.read_bytes() or marker in path.name.encode()]
