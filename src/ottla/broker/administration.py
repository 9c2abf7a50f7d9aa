"""Changes of topics and configs: immediate in a standalone broker, asynchronous in a cluster (`membership`).

When one of these returns, this broker's view shows the change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ottla.core.errors import ElectionNotNeeded, InvalidReplicaAssignment, NoReassignmentInProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.topics import TopicState
    from ottla.storage.catalog.catalog import Edit
    from ottla.storage.catalog.entries import ConfigResource


T = TypeVar("T")


class NewTopic(NamedTuple):
    """The parameters of a topic to create; None means the broker's default."""

    name: str
    partitions: int | None = None
    configs: Mapping[str, str] | None = None
    factor: int | None = None
    assignments: Mapping[int, tuple[int, ...]] = {}


class Administration(Protocol):
    async def create_topic(self, wanted: NewTopic, timeout_ms: int) -> TopicState: ...

    async def grow(self, state: TopicState, count: int, assignments: Sequence[Sequence[int]], timeout_ms: int) -> None:
        """Add partitions to a topic. `assignments` are the manual assignments of the new partitions, if any."""

    async def configure(self, state: TopicState, edit: Edit[str]) -> None: ...

    async def delete_topic(self, state: TopicState) -> None: ...

    async def catch_up(self, topic: str) -> None:
        """Make sure that this broker knows all earlier changes of this topic, at whichever broker they were made."""

    async def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        """Change the configs of one broker, or of all brokers."""

    async def change_catalog(self, change: Callable[[], T]) -> T:
        """Run a blocking change of users, ACLs or quotas without blocking the event loop."""

    async def move(
        self, state: TopicState, partition: int, replicas: Sequence[int] | None, *, keeps_factor: bool
    ) -> None:
        """Reassign the partition to these nodes; None cancels a reassignment in progress."""

    async def elect_leader(self, state: TopicState, partition: int, *, is_unclean: bool) -> None: ...


class LocalAdministration:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def create_topic(self, wanted: NewTopic, timeout_ms: int) -> TopicState:  # noqa: ARG002
        return self._broker.create_topic(wanted.name, wanted.partitions, wanted.configs)

    async def grow(
        self,
        state: TopicState,
        count: int,
        assignments: Sequence[Sequence[int]],  # noqa: ARG002
        timeout_ms: int,  # noqa: ARG002
    ) -> None:
        self._broker.topics.grow(state, count)

    async def configure(self, state: TopicState, edit: Edit[str]) -> None:
        self._broker.topics.configure(state, edit)

    async def delete_topic(self, state: TopicState) -> None:
        self._broker.delete_topic(state)

    async def catch_up(self, topic: str) -> None:
        """This broker makes all changes."""

    async def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        self._broker.change_configs(resource, edit)

    async def change_catalog(self, change: Callable[[], T]) -> T:
        return change()

    async def move(
        self,
        state: TopicState,
        partition: int,
        replicas: Sequence[int] | None,
        *,
        keeps_factor: bool,  # noqa: ARG002
    ) -> None:
        if replicas is None:
            raise NoReassignmentInProgress(f"{state.name}-{partition} has no reassignment in progress")
        if tuple(replicas) != (self._broker.config.node_id,):
            raise InvalidReplicaAssignment("this broker is standalone and holds every partition")

    async def elect_leader(self, state: TopicState, partition: int, *, is_unclean: bool) -> None:  # noqa: ARG002
        raise ElectionNotNeeded(f"{state.name}-{partition} already has its only replica as leader")
