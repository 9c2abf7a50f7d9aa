"""What is found damaged, and whom it is told to."""

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
    """Something that cannot be read, and was passed over."""

    queue: str
    part: int
    offset: int
    """Where in the part it begins."""
    end: int
    """Where in the part reading goes on."""
    messages: int
    """How many messages are lost with it."""
    text: str
    """What is wrong."""
    kind: type[QueueError] = InvalidChecksum

    def __str__(self) -> str:
        lost = f"; messages lost: {self.messages}" if self.messages else ""
        return f"queue {self.queue}, part {self.part}, byte {self.offset}: {self.text}{lost}"

    def as_error(self) -> QueueError:
        return self.kind(str(self))


def missing_part(queue: str, part: int, next_part: int) -> Damage:
    text = f"missing; reading goes on with part {next_part}"
    return Damage(queue=queue, part=part, offset=0, end=0, messages=0, text=text, kind=NotFound)


OnDamage: TypeAlias = "Callable[[Damage], None]"


def log_damage(damage: Damage) -> None:
    _logger.warning("%s", damage)
