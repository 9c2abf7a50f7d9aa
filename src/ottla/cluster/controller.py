"""The controller: elected through ZooKeeper, and fenced by its controller epoch.

Every write is conditional on the controller epoch's node, in the same transaction, so that a deposed controller cannot
change anything.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.cluster.catalog_nodes import read_wanted, topic_path
from ottla.cluster.decisions import ChangeState, CreateState, DeleteState, Step
from ottla.cluster.nodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    controller_data,
    from_json,
    partition_data,
    partition_path,
    partitions_path,
    read_controller,
    to_json,
)
from ottla.cluster.operations import Check, Conflict, Create, Delete, Put

if TYPE_CHECKING:
    from ottla.cluster.mirror import Mirror
    from ottla.cluster.operations import Operation
    from ottla.cluster.store import Store
    from ottla.core.ids import TopicId

_logger: Final = logging.getLogger(__name__)

_MOST_AT_ONCE: Final = 500
"""Operations per transaction, which must stay well below ZooKeeper's limit of one megabyte."""


class Deposed(Exception):  # noqa: N818
    """Another node is the controller now."""


class Controller:
    """The operations of the active controller. They block on ZooKeeper: call them in a worker thread."""

    def __init__(self, store: Store, mirror: Mirror, epoch_version: int) -> None:
        self._store = store
        self._mirror = mirror
        self._fence = Check(CONTROLLER_EPOCH, epoch_version)

    @classmethod
    def elect(cls, store: Store, mirror: Mirror, node_id: int) -> Controller | None:
        """Become the controller, unless another node is.

        This node may be the controller without knowing it: the response to its election was lost, or an earlier
        process was elected, and its session has not expired. It is elected again, in a new epoch.
        """
        held = store.read(CONTROLLER)
        if held is not None and read_controller(held.data) != node_id:
            return None
        known = store.read(CONTROLLER_EPOCH)
        if known is None:
            return None
        epoch = int(known.data) + 1
        try:
            store.commit(
                [
                    Put(CONTROLLER_EPOCH, str(epoch).encode(), known.version),
                    *([] if held is None else [Delete(CONTROLLER, held.version)]),
                    Create(CONTROLLER, controller_data(node_id, epoch), is_ephemeral=True),
                ]
            )
        except Conflict:
            return None
        _logger.info("node %d became controller with epoch %d", node_id, epoch)
        mirror.refresh([CONTROLLER, CONTROLLER_EPOCH], store.timeout_s)
        return cls(store, mirror, known.version + 1)

    def resign(self) -> None:
        try:
            self._store.commit([self._fence, Delete(CONTROLLER)])
        except Conflict:
            return

    def carry_out(self, wanted: list[Step]) -> None:
        """Apply the changes that do not conflict. Conflicting ones were changed by others, and are decided again.

        Raises Deposed if none was applied.
        """
        begun = {step.state.topic_id: step.state.topic for step in wanted if isinstance(step, CreateState)}
        self._commit(
            [Create(partitions_path(each), to_json({"topic": topic_path(topic)})) for each, topic in begun.items()]
        )
        wanted = self._without_states_of_topics(wanted)
        for first in range(0, len(wanted), _MOST_AT_ONCE):
            chunk = wanted[first : first + _MOST_AT_ONCE]
            self._commit([operation for step in chunk for operation in _operations(step)])
        ended = {step.key.topic_id for step in wanted if isinstance(step, DeleteState)}
        self._commit([Delete(partitions_path(topic_id)) for topic_id in ended])
        self._mirror.refresh([_path(step) for step in wanted], self._store.timeout_s)

    def _without_states_of_topics(self, wanted: list[Step]) -> list[Step]:
        """Without deletions of states whose topic exists, but has not been seen by this node yet."""
        doomed = {step.key.topic_id for step in wanted if isinstance(step, DeleteState)}
        gone = {topic_id for topic_id in doomed if self._is_gone(topic_id)}
        return [step for step in wanted if not isinstance(step, DeleteState) or step.key.topic_id in gone]

    def _is_gone(self, topic_id: TopicId) -> bool:
        """Whether the topic was deleted. A topic is created before its states, and its id is never reused: once
        deleted, it stays deleted.
        """
        folder = self._store.read(partitions_path(topic_id))
        if folder is None or not folder.data:  # an older release did not store the topic's name
            return True
        topic = self._store.read(from_json(folder.data)["topic"])
        return topic is None or read_wanted(topic.data).id != topic_id

    def _commit(self, operations: list[Operation]) -> None:
        if not operations:
            return
        try:
            self._store.commit([self._fence, *operations])
        except Conflict as conflict:
            if conflict.index == 0:
                raise Deposed from None
            if len(operations) > 1:
                for operation in operations:
                    self._commit([operation])


def _path(step: Step) -> str:
    match step:
        case CreateState():
            return partition_path(step.state.key)
        case ChangeState():
            return partition_path(step.before.key)
        case DeleteState():
            return partition_path(step.key)


def _operations(step: Step) -> list[Operation]:
    path = _path(step)
    match step:
        case CreateState():
            return [Create(path, partition_data(step.state))]
        case ChangeState():
            return [Put(path, partition_data(step.after), step.before.version)]
        case DeleteState():
            return [Delete(path)]
