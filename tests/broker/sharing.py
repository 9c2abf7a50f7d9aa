"""A low-level share group member: one call per request."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING

from ottla.core.errors import ErrorCode
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
from ottla.wire.messages import share_acknowledge as acknowledging
from ottla.wire.messages import share_fetch as fetching
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

from .making import send_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse

    from .raw_client import RawClient, Sent

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
_GROUP_RESOURCE = 32
_ids = count(1)


class Delivered:
    """One partition of a fetch response."""

    def __init__(self, data: fetching.PartitionData) -> None:
        self.data = data
        self.ranges = [(one.first_offset, one.last_offset, one.delivery_count) for one in data.acquired_records]
        mine = {offset for first, last, _ in self.ranges for offset in range(first, last + 1)}
        records = RecordReader(bytes(data.records or b""))
        self.values = {record.offset: record.value for record in records if record.offset in mine}

    @property
    def offsets(self) -> list[int]:
        return sorted(self.values)


class ShareMember:
    def __init__(self, client: RawClient, group: str, topic: str, topic_id: bytes) -> None:
        self.client = client
        self.group = group
        self.topic = topic
        self.topic_id = topic_id
        self.id = f"member-{next(_ids)}"
        self.epoch = 0
        self.session_epoch = 0
        joined = self.heartbeat(topics=(topic,))
        assert joined.error_code == ErrorCode.NONE, joined
        self.assigned = [] if joined.assignment is None else list(joined.assignment.topic_partitions)

    def heartbeat(self, topics: tuple[str, ...] | None = None, epoch: int | None = None) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.id,
            member_epoch=self.epoch if epoch is None else epoch,
            subscribed_topic_names=topics,
        )
        answer = self.client.ask(request)
        if answer.error_code == ErrorCode.NONE:
            self.epoch = answer.member_epoch
        return answer

    # Fetching

    def fetch(  # noqa: PLR0913
        self,
        *,
        max_records: int = 500,
        is_strict: bool = True,
        wait_ms: int = 0,
        acks: Sequence[tuple[int, int, Sequence[int]]] = (),
        partition: int = 0,
    ) -> Delivered:
        sent = self.send_fetch(
            max_records=max_records, is_strict=is_strict, wait_ms=wait_ms, acks=acks, partition=partition
        )
        return self.receive(sent)

    def send_fetch(  # noqa: PLR0913
        self,
        *,
        max_records: int = 500,
        is_strict: bool = True,
        wait_ms: int = 10_000,
        acks: Sequence[tuple[int, int, Sequence[int]]] = (),
        partition: int = 0,
        min_bytes: int = 1,
    ) -> Sent[fetching.ShareFetchResponse]:
        batches = tuple(
            fetching.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=tuple(kinds))
            for first, last, kinds in acks
        )
        part = fetching.FetchPartition(partition_index=partition, acknowledgement_batches=batches)
        request = fetching.ShareFetchRequest(
            group_id=self.group,
            member_id=self.id,
            share_session_epoch=self.session_epoch,
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=1 << 20,
            max_records=max_records,
            batch_size=max_records,
            share_acquire_mode=1 if is_strict else 0,
            topics=(fetching.FetchTopic(topic_id=self.topic_id, partitions=(part,)),),
            forgotten_topics_data=(),
        )
        self.session_epoch += 1
        return self.client.send(request)

    def receive(self, sent: Sent[fetching.ShareFetchResponse]) -> Delivered:
        answer = self.client.receive(sent)
        assert answer.error_code == ErrorCode.NONE, answer
        if not answer.responses:
            return Delivered(_NOTHING)
        [topic] = answer.responses
        [data] = topic.partitions
        assert data.error_code == ErrorCode.NONE, data
        return Delivered(data)

    # Acknowledging

    def acknowledge(self, first: int, last: int, *kinds: int, session_epoch: int | None = None) -> int:
        """Return the error, if any."""
        batch = acknowledging.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
        part = acknowledging.AcknowledgePartition(partition_index=0, acknowledgement_batches=(batch,))
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.id,
            share_session_epoch=self.session_epoch if session_epoch is None else session_epoch,
            topics=(acknowledging.AcknowledgeTopic(topic_id=self.topic_id, partitions=(part,)),),
        )
        answer = self.client.ask(request)
        if answer.error_code != ErrorCode.NONE:
            return answer.error_code
        self.session_epoch += 1
        [data] = answer.responses[0].partitions
        return data.error_code

    def close(self) -> None:
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group, member_id=self.id, share_session_epoch=-1, topics=()
        )
        answer = self.client.ask(request)
        assert answer.error_code == ErrorCode.NONE, answer
        self.heartbeat(epoch=-1)


_NOTHING = fetching.PartitionData(
    partition_index=0,
    error_code=0,
    acknowledge_error_code=0,
    current_leader=fetching.LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
    records=b"",
    acquired_records=(),
)


def set_group_config(client: RawClient, group: str, **configs: str | int) -> int:
    """Set group configs (underscores for dots); return the error, if any."""
    changes = tuple(
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=str(value))
        for name, value in configs.items()
    )
    resource = AlterConfigsResource(resource_type=_GROUP_RESOURCE, resource_name=group, configs=changes)
    [changed] = client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)).responses
    return changed.error_code


def produce_delayed(client: RawClient, topic: str, *delayed: tuple[bytes, int | None], codec: int = 0) -> None:
    """Produce values in one batch, each with its delivery time."""
    builder = BatchBuilder(codec)
    for value, due_ms in delayed:
        headers = () if due_ms is None else (("ottla-deliver-at", str(due_ms).encode()),)
        builder.append(time.time_ns() // 1_000_000, None, value, headers)
    assert send_batch(client, topic, bytes(builder.build())).error_code == ErrorCode.NONE
