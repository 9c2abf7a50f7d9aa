"""Errors of archives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition


class ArchiveError(OttlaError):
    """An archive does not match its topic, or cannot be written."""


class ArchiveInUse(ArchiveError):
    """Another archiver is running."""


def gap(at: TopicPartition, archived: int, earliest: int) -> ArchiveError:
    return ArchiveError(
        f"{at}: the archive ends at offset {archived} and the topic now begins at {earliest}; "
        f"{archived} to {earliest - 1} are gone (use --allow-gaps to continue without them)"
    )


def shorter(at: TopicPartition, archived: int, latest: int) -> ArchiveError:
    return ArchiveError(f"{at}: the archive ends at offset {archived}, which is past the topic's end, {latest}")


def another_topic(topic: str, where: str) -> ArchiveError:
    return ArchiveError(f"{topic} was deleted and re-created; {where} holds the topic that is gone, use another place")
