"""The topics of this broker and their partitions."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.partition import Partition
from ottla.core.errors import DataDirError, InvalidRequest, StorageError, UnknownTopicId, UnknownTopicOrPartition
from ottla.core.ids import TopicId, TopicPartition
from ottla.storage.catalog.entries import Topic
from ottla.storage.catalog.rules import check_new_topic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    from ottla.broker.configs.topic_config import TopicConfig
    from ottla.storage.catalog.catalog import Catalog, Edit
    from ottla.storage.folder.data_dir import DataDir
    from ottla.storage.partition_log import PartitionLog

_logger: Final = logging.getLogger(__name__)

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
AUDIT: Final = "__ottla_audit"
INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, AUDIT})
_CLUSTER_METADATA: Final = "__cluster_metadata"
"""The log of Kafka's controllers, whose folder looks like a partition's."""


class TopicState:
    """A topic's entry in the catalog and its partitions."""

    __slots__ = ("config", "entry", "partitions")

    def __init__(self, entry: Topic, config: TopicConfig, partitions: list[Partition]) -> None:
        self.entry = entry
        self.config = config
        self.partitions = partitions

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def raw_id(self) -> bytes:
        return self.entry.id.raw


class Topics:
    def __init__(
        self,
        data_dir: DataDir,
        catalog: Catalog,
        config_for: Callable[[Mapping[str, str]], TopicConfig],
        sync: Callable[[Partition, int], Awaitable[None]],
    ) -> None:
        self._data_dir = data_dir
        self._catalog = catalog
        self._config_for = config_for
        self._sync = sync
        self.by_name: dict[str, TopicState] = {}
        self.by_id: dict[bytes, TopicState] = {}
        self.attach: Callable[[TopicState, Partition], None] | None = None
        """In a cluster: called for each new partition, before it is used."""
        self.has_table: Callable[[], None] | None = None
        """Called when a topic with ottla.table.enable was created or changed."""
        self.version = 0
        """Incremented with every change, so that caches of topics know when to update."""

    def load(self, *, is_new_catalog: bool, is_shared: bool = False) -> None:
        """Load the topics of the catalog, and handle folders without a topic.

        Topics of a shared catalog may have been deleted and re-created while this node was offline.
        """
        self._data_dir.sets_strays_aside = is_shared
        if is_new_catalog:
            self._adopt_folders()
        for entry in self._catalog.view.topics.values():
            self.put(entry)
        for at, topic_id in list(self._data_dir.partitions()):
            state = self.by_name.get(at.topic)
            is_other = is_shared and state is not None and topic_id not in (None, state.entry.id)
            if state is None or at.partition >= len(state.partitions) or is_other:
                self._set_aside(at)

    def _set_aside(self, at: TopicPartition) -> None:
        try:
            renamed = self._data_dir.set_stray_aside(at)
        except StorageError as failed:
            _logger.error("%s belongs to no topic, and could not be renamed: %s", at, failed)
        else:
            _logger.warning("%s belongs to no topic and was renamed to %s", at, renamed.name)

    def _adopt_folders(self) -> None:
        """Adopt a folder written by Apache Kafka, for example: its partitions become topics with their ids."""
        found: dict[str, tuple[int, TopicId | None]] = {}
        for at, topic_id in self._data_dir.partitions():
            count, known_id = found.get(at.topic, (0, None))
            found[at.topic] = max(count, at.partition + 1), known_id or topic_id
        for name, (count, topic_id) in found.items():
            self._catalog.create_topic(name, count, is_internal=name in INTERNAL_TOPICS, topic_id=topic_id)

    # Finding

    def partition(self, name: str, index: int) -> Partition:
        state = self.by_name.get(name)
        if state is None or not 0 <= index < len(state.partitions):
            raise UnknownTopicOrPartition(f"there is no partition {name}-{index}")
        return state.partitions[index]

    def partition_by_id(self, raw_id: bytes, index: int) -> Partition:
        state = self.by_id.get(raw_id)
        if state is None:
            raise UnknownTopicId("unknown topic id")
        if not 0 <= index < len(state.partitions):
            raise UnknownTopicOrPartition(f"there is no partition {state.name}-{index}")
        return state.partitions[index]

    def exists(self, at: TopicPartition) -> bool:
        state = self.by_name.get(at.topic)
        return state is not None and 0 <= at.partition < len(state.partitions)

    def has(self, partition: Partition) -> bool:
        """Whether the partition still exists: its topic was neither deleted nor re-created."""
        state = self.by_name.get(partition.at.topic)
        return state is not None and partition in state.partitions

    def open_partitions(self) -> Iterator[Partition]:
        """Partitions whose log has been opened so far."""
        for state in self.by_name.values():
            for partition in state.partitions:
                if partition.is_open:
                    yield partition

    def partitions_here(self) -> Iterator[Partition]:
        """The partitions with a replica on this broker; all of them if it is standalone."""
        for state in self.by_name.values():
            for partition in state.partitions:
                if partition.is_here:
                    yield partition

    # Changing

    def check_new(self, name: str) -> None:
        """Raise the errors of `create` for this name."""
        if name == _CLUSTER_METADATA:
            raise InvalidRequest(f"Creation of internal topic {name} is prohibited.")
        check_new_topic(self._catalog.view, Topic(name, TopicId.random(), partitions=1))

    def create(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None, *, is_internal: bool = False
    ) -> TopicState:
        self.check_new(name)
        return self.put(self._catalog.create_topic(name, partitions, configs or {}, is_internal=is_internal))

    def grow(self, state: TopicState, partitions: int) -> None:
        self.put(self._catalog.grow_topic(state.entry.id, partitions))

    def configure(self, state: TopicState, edit: Edit[str]) -> None:
        self.put(self._catalog.change_topic_configs(state.entry.id, edit))

    def delete(self, state: TopicState) -> list[Path]:
        """Remove the topic at once; the caller removes its remaining folders."""
        self._catalog.delete_topic(state.entry.id)
        return self.forget(state)

    def forget(self, state: TopicState) -> list[Path]:
        """Forget a topic that is no longer in the catalog."""
        del self.by_name[state.name]
        del self.by_id[state.raw_id]
        self.version += 1
        for partition in state.partitions:
            partition.waits.end()
        return self._data_dir.delete_partitions(partition.at for partition in state.partitions)

    def reconfigure(self) -> None:
        """Apply changed broker configs to every topic."""
        for state in self.by_name.values():
            self.put(state.entry)

    def put(self, entry: Topic) -> TopicState:
        config = self._config_for(entry.configs)
        state = self.by_name.get(entry.name)
        if state is None or state.entry.id != entry.id:
            state = self.by_name[entry.name] = TopicState(entry, config, [])
            self.by_id[entry.id.raw] = state
        state.entry = entry
        state.config = config
        for partition in state.partitions:
            partition.use_config(config)
        for index in range(len(state.partitions), entry.partitions):
            partition = self._partition(state, index)
            state.partitions.append(partition)
            if self.attach is not None:
                self.attach(state, partition)
        self.version += 1
        if config.has_table and self.has_table is not None:
            self.has_table()
        return state

    def _partition(self, state: TopicState, index: int) -> Partition:
        at = TopicPartition(state.name, index)

        def open_log() -> PartitionLog:
            if self.by_name.get(state.name) is not state:
                # Its folder is gone, or belongs to another topic with this name.
                raise UnknownTopicOrPartition(f"the topic of {at} was deleted")
            try:
                return self._data_dir.open_partition(at, state.config.log, state.entry.id)
            except DataDirError as unusable:
                raise StorageError(str(unusable)) from unusable

        return Partition(at, state.config, open_log, partial(self._data_dir.facts, at), self._sync)
