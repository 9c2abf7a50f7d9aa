"""Start offsets and progress of share groups: in this broker, or at their coordinator.

Both have the same interface. Standalone nothing waits, so that dependent changes happen in the same step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.broker.share.state_log import StateLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.share.coordinator import ShareCoordinator
    from ottla.broker.share.writing import Written
    from ottla.core.errors import ApiError
    from ottla.share.config import ShareConfig
    from ottla.share.fates import Change
    from ottla.share.formats import StateKey
    from ottla.share.partition import SharePartition

    FirstOffset = Callable[[str, Partition], int]
    Dropped = Callable[[StateKey], None]


class Progress(NamedTuple):
    start: int
    lag: int


class States(Protocol):
    coordinator: ShareCoordinator | None

    def start(self) -> None: ...

    async def stop(self) -> None: ...

    # For the leader of a partition

    async def ready(self, wanted: Mapping[StateKey, Partition]) -> dict[StateKey, ApiError]:
        """Load the states of these; returns the errors of those that failed."""

    def rules_of(self, key: StateKey) -> SharePartition | None: ...

    def check(self, key: StateKey) -> None:
        """Raises ApiError if there may be a state that cannot be read."""

    def change(self, key: StateKey, start: int, changes: Sequence[Change]) -> Written:
        """Write changes. Raises ApiError on failure."""

    def changed(self, key: StateKey) -> None:
        """Written records have been applied."""

    def unused(self, group_id: str) -> None:
        """Handle the end of a group's last session on this broker."""

    # For the coordinator of a group

    async def initialize(self, key: StateKey, partition: Partition, *, at_its_start: bool) -> Written | None:
        """Start the group on this partition, unless it has started."""

    async def move(self, key: StateKey, offset: int) -> Written | None:
        """Reset the group to this offset."""

    async def forget(self, keys: Iterable[StateKey]) -> Written | None: ...

    async def progress(self, key: StateKey, partition: Partition) -> Progress | None:
        """None if the group has no state of this partition."""

    def has_consumed(self, keys: Iterable[StateKey]) -> bool:
        """Whether, as far as this node knows, anything here was acknowledged, or set by an administrator."""

    # For both

    def forget_topic(self, topic_id: bytes) -> None: ...

    def clear(self) -> None: ...


class OwnStates:
    """The states of a standalone broker."""

    coordinator: ShareCoordinator | None = None

    def __init__(self, broker: Broker, config: ShareConfig, first_offset: FirstOffset, dropped: Dropped) -> None:
        self._log = StateLog(broker, config)
        self._first_offset = first_offset
        self._dropped = dropped
        self.check = self._log.check
        self.change = self._log.change
        self.changed = self._log.changed

    def start(self) -> None:
        self._log.load()

    async def stop(self) -> None:
        """Nothing is pending."""

    async def ready(self, wanted: Mapping[StateKey, Partition]) -> dict[StateKey, ApiError]:  # noqa: ARG002
        return {}

    def rules_of(self, key: StateKey) -> SharePartition | None:
        kept = self._log.kept.get(key)
        return None if kept is None else kept.rules

    def unused(self, group_id: str) -> None:
        """The state is kept."""

    async def initialize(self, key: StateKey, partition: Partition, *, at_its_start: bool) -> Written | None:
        self._log.check(key)
        if key in self._log.kept:
            return None
        start = partition.log.start_offset if at_its_start else self._first_offset(key.group_id, partition)
        return self._log.begin(key, start)

    async def move(self, key: StateKey, offset: int) -> Written | None:
        self._log.check(key)
        self._dropped(key)
        known = self._log.kept.get(key)
        return self._log.begin(key, offset, 1 if known is None else known.state_epoch + 1)

    async def forget(self, keys: Iterable[StateKey]) -> Written | None:
        doomed = list(keys)
        for key in doomed:
            self._log.check(key)
        return self._forget(doomed)

    def _forget(self, keys: Iterable[StateKey]) -> Written | None:
        doomed = list(keys)
        for key in doomed:
            self._dropped(key)
        return self._log.forget(doomed)

    async def progress(self, key: StateKey, partition: Partition) -> Progress | None:
        self._log.check(key)
        rules = self.rules_of(key)
        if rules is None:
            return None
        rules.move_start(partition.log.start_offset)
        rules.cut_end(partition.log.next_offset)
        return Progress(rules.start, max(partition.high_watermark - rules.start - rules.completed, 0))

    def has_consumed(self, keys: Iterable[StateKey]) -> bool:
        return not all((kept := self._log.kept.get(key)) is None or kept.is_as_begun for key in keys)

    def forget_topic(self, topic_id: bytes) -> None:
        self._forget(key for key in self._log.kept if key.topic_id == topic_id)

    def clear(self) -> None:
        for key in self._log.kept:
            self._dropped(key)
        self._log.clear()


def states_of(broker: Broker, config: ShareConfig, first_offset: FirstOffset, dropped: Dropped) -> States:
    if broker.replication is None:
        return OwnStates(broker, config, first_offset, dropped)
    from ottla.broker.share.cluster_states import ClusterStates  # not needed by a standalone broker

    return ClusterStates(broker, broker.replication, config, first_offset, dropped)
