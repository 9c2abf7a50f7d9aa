"""How much data each key has encrypted in a data folder; read-only."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.core.errors import DataDirError
from ottla.storage.files import CORRUPT, LOG
from ottla.storage.folder.own_keys import FIRST_OWN_KEY_ID
from ottla.storage.inspect import key_id_of_segment, segment_files

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class KeyUse:
    segments: int = 0
    size: int = 0


@dataclass(slots=True)
class FolderKeyUse:
    by_key: dict[int, KeyUse] = field(default_factory=lambda: defaultdict(KeyUse))
    """Usage by the oldest key in a segment; 0 is unencrypted."""
    own: KeyUse = field(default_factory=KeyUse)
    """Usage of the partitions' own keys."""
    plain_leftovers: list[Path] = field(default_factory=list)
    """Files set aside by recovery before encryption was enabled, which stay unencrypted."""


def find_key_use(data_dir: Path) -> FolderKeyUse:
    if not data_dir.is_dir():
        raise DataDirError(f"no data folder {data_dir}")
    found = FolderKeyUse()
    for folder in sorted(path for path in data_dir.iterdir() if path.is_dir()):
        for file in segment_files(folder):
            # The broker's retention or re-encryption may remove a segment meanwhile.
            with suppress(FileNotFoundError):
                size = file.stat().st_size
                if size:
                    key_id = key_id_of_segment(file)
                    use = found.own if key_id >= FIRST_OWN_KEY_ID else found.by_key[key_id]
                    use.segments += 1
                    use.size += size
        found.plain_leftovers += sorted(
            path for path in folder.iterdir() if path.name.endswith(CORRUPT) and f"{LOG}." in path.name
        )
    return found
