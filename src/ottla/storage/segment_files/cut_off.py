"""Truncates a damaged log, and keeps the removed part beside it as `.corrupt` files."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final

from ottla.storage.files import CORRUPT

if TYPE_CHECKING:
    from ottla.storage.segment_files.segment import Segment

_logger: Final = logging.getLogger(__name__)


def cut_segment(segment: Segment, position: int, reason: str) -> None:
    """Truncate the segment at this position."""
    partition = segment.path.parent.name
    if position == segment.size:
        _logger.warning("%s: truncating the log after %s: %s", partition, segment.path.name, reason)
        return
    import shutil  # imported lazily: takes 2 ms

    kept_as = segment.path.with_name(f"{segment.path.name}.{position}{CORRUPT}")
    try:
        with segment.path.open("rb") as damaged, kept_as.open("wb") as aside:
            damaged.seek(position)
            shutil.copyfileobj(damaged, aside)
    except OSError as refused:
        # A full disk has no space to keep a copy, and starting is more important than a torn batch.
        kept_as.unlink(missing_ok=True)
        _logger.error("%s: could not keep the truncated part: %s", partition, refused)
    _logger.warning(
        "%s: truncating the log at byte %d of %s, keeping %d bytes as %s: %s",
        partition,
        position,
        segment.path.name,
        segment.size - position,
        kept_as.name,
        reason,
    )
    os.truncate(segment.path, position)
    segment.size = position


def set_aside(segments: list[Segment]) -> None:
    """Rename the segments behind the end of the log, the last one first."""
    for segment in reversed(segments):
        segment.close()
        segment.path.rename(segment.path.with_name(segment.path.name + CORRUPT))
        for path in segment.paths()[1:]:
            path.unlink(missing_ok=True)
        _logger.warning(
            "%s: moving %s aside, which is behind the corruption", segment.path.parent.name, segment.path.name
        )
