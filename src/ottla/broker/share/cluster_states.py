"""Share group state on a cluster node: start offsets and progress."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.partition_facts import bounds
from ottla.broker.share.coordinator import ShareCoordinator
from ottla.broker.share.led_states import LedStates
from ottla.broker.share.state_client import ShareStateClient
from ottla.broker.share.states import Progress
from ottla.core.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.replication.replication import Replication
    from ottla.broker.share.states import Dropped, FirstOffset
    from ottla.broker.share.writing import Written
    from ottla.share.config import ShareConfig
    from ottla.share.formats import StateKey

_FROM_ITS_START: Final = 0
_LEADER_DECIDES: Final = -1


class ClusterStates:
    """The states that a cluster node leads or coordinates, and requests to other coordinators."""

    def __init__(
        self, broker: Broker, replication: Replication, config: ShareConfig, first_offset: FirstOffset, dropped: Dropped
    ) -> None:
        self._broker = broker
        self._coordinator = ShareCoordinator(broker, replication.cluster, config)
        self.coordinator: ShareCoordinator | None = self._coordinator
        self._questions = ShareStateClient(broker, replication)
        self._led = LedStates(self._questions, first_offset, dropped)
        self.ready = self._led.ready
        self.rules_of = self._led.rules_of
        self.change = self._led.change
        self.changed = self._led.changed

    def start(self) -> None:
        self._coordinator.start()

    async def stop(self) -> None:
        self._coordinator.stop()
        await self._led.stop()
        await self._questions.close()

    def unused(self, group_id: str) -> None:
        # An administrator may reset the group now without this node noticing.
        self._led.drop_all(lambda key: key.group_id == group_id)

    def check(self, key: StateKey) -> None:
        """See `ready`."""

    async def initialize(self, key: StateKey, partition: Partition, *, at_its_start: bool) -> Written | None:  # noqa: ARG002
        await self._questions.initialize(key, 0, _FROM_ITS_START if at_its_start else _LEADER_DECIDES)
        return None

    async def move(self, key: StateKey, offset: int) -> Written | None:
        try:
            state_epoch = (await self._questions.summary(key)).state_epoch + 1
        except ApiError as refused:
            if refused.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            state_epoch = 0
        await self._questions.initialize(key, state_epoch, offset)
        return None

    async def forget(self, keys: Iterable[StateKey]) -> Written | None:
        await asyncio.gather(*(self._questions.delete(key) for key in keys))
        return None

    async def progress(self, key: StateKey, partition: Partition) -> Progress | None:
        try:
            found = await self._questions.summary(key)
        except ApiError as refused:
            if refused.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None
        if found.start_offset < 0:
            return None
        start, end = (await bounds(self._broker, [partition]))[partition.at]
        return Progress(
            max(found.start_offset, start), max(end - max(found.start_offset, start) - found.delivery_complete_count, 0)
        )

    def has_consumed(self, keys: Iterable[StateKey]) -> bool:  # noqa: ARG002
        """Only the leaders know: `progress` is None if a group has not started."""
        return True

    def forget_topic(self, topic_id: bytes) -> None:
        self._led.drop_all(lambda key: key.topic_id == topic_id)
        self._coordinator.forget_topic(topic_id)

    def clear(self) -> None:
        self._led.drop_all(lambda _: True)
        self._coordinator.log.kept.clear()
