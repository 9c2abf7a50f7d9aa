"""Corruption reports."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla.queue.errors import InvalidChecksum, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.queue.errors import QueueError

_logger: Final = logging.getLogger("ottla.queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Corrupt data that was skipped."""

    queue: str
    part: int
    offset: int
    """Start offset in the part."""
    end: int
    """Offset in the part where reading continues."""
    messages: int
    """The number of lost messages."""
    text: str
    """Description."""
    kind: type[QueueError] = InvalidChecksum

    def __str__(self) -> str:
        lost = f"; messages lost: {self.messages}" if self.messages else ""
        return f"queue {self.queue}, part {self.part}, byte {self.offset}: {self.text}{lost}"

    def as_error(self) -> QueueError:
        return self.kind(str(self))


def missing_part(queue: str, part: int, next_part: int) -> Damage:
    text = f"missing; reading continues with part {next_part}"
    return Damage(queue=queue, part=part, offset=0, end=0, messages=0, text=text, kind=NotFound)


OnDamage: TypeAlias = "Callable[[Damage], None]"


def log_damage(damage: Damage) -> None:
    _logger.warning("%s", damage)
