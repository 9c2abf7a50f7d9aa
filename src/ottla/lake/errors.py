"""Why a table is not written."""

from __future__ import annotations

from ottla.core.errors import OttlaError


class LakeError(OttlaError):
    """A table cannot be maintained; a person must decide."""


class Fenced(LakeError):
    """Another writer has taken over the table."""


class TableChanged(OttlaError):
    """The table's offsets are not those after this writer's last commit: it was rolled back or re-created."""


class CatalogUnavailable(OttlaError):
    """The catalog or the warehouse did not answer; the outcome of a commit may be unknown."""


def another_topic(table: str, topic: str) -> LakeError:
    return LakeError(
        f"table {table} has the records of an earlier topic {topic}, which was deleted and re-created; "
        "drop or rename the table, or write to another namespace (--namespace)"
    )


def gap(topic: str, partition: int, covered: int, earliest: int) -> LakeError:
    return LakeError(
        f"{topic}-{partition}: records {covered} to {earliest - 1} were deleted from the topic before they were in the "
        "table; run with --allow-gaps to continue without them"
    )


def shorter(topic: str, partition: int, covered: int, end: int) -> LakeError:
    return LakeError(
        f"{topic}-{partition} ends at offset {end}, but the table has its records up to {covered - 1}: "
        "the topic lost records"
    )
