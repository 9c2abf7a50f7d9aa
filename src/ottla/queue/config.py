"""Queue settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from ottla.core.keys import KeyRing

Fsync = Literal["push", "batch", "never"]
Remove = Literal["never", "committed"]


class QueueOptions(TypedDict, total=False):
    """The fields of `QueueConfig`, as keywords of `Queue`."""

    fsync: Fsync
    batch_messages: int
    part_bytes: int
    part_age_ms: int | None
    remove: Remove
    keys: KeyRing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    fsync: Fsync = "push"
    """When messages are synced: before a push returns, once per batch, or by the operating system."""
    batch_messages: int = 1000
    """With fsync = "batch": sync after this many pushes; push_many always syncs."""
    part_bytes: int = 1 << 30
    """Roll to a new part before this one exceeds this size."""
    part_age_ms: int | None = 7 * 24 * 3600 * 1000
    """Roll to a new part at this age; None for never."""
    remove: Remove = "never"
    """Whether to remove parts that every consumer has committed past."""
    keys: KeyRing | None = field(default=None, repr=False)
    """Encrypt messages with the newest of these keys; decrypt with any of them."""

    def __post_init__(self) -> None:
        if self.fsync not in ("push", "batch", "never"):
            raise ValueError(f"fsync must be push, batch or never, got {self.fsync!r}")
        if self.remove not in ("never", "committed"):
            raise ValueError(f"remove must be never or committed, got {self.remove!r}")
        if self.batch_messages < 1:
            raise ValueError(f"batch_messages must be at least 1, got {self.batch_messages}")
        if self.part_bytes < 1:
            raise ValueError(f"part_bytes must be at least 1, got {self.part_bytes}")
        if self.part_age_ms is not None and self.part_age_ms < 1:
            raise ValueError(f"part_age_ms must be at least 1 or None, got {self.part_age_ms}")
