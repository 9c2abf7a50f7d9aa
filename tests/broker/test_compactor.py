"""Compaction in a running broker, as clients see it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

import ottla as package
from ottla.broker.roles import Standalone
from ottla.broker.settings import Settings
from ottla.client.errors import BrokerError
from ottla.core.errors import ErrorCode
from ottla.storage.removed_tombstones import RemovedTombstones
from ottla.testing import EphemeralBroker

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

COMPACT = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
VALUE = b"x" * 1000


def write(broker: EphemeralBroker, rounds: int, keys: int = 500) -> None:
    broker.create_topic("t", configs=COMPACT)
    with package.Producer(broker.bootstrap_servers) as producer:
        for number in range(rounds):
            for key in range(keys):
                producer.send("t", b"%d-" % number + VALUE, key=b"%d" % key)


def read(broker: EphemeralBroker) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in broker.records("t")]


def compact(broker: EphemeralBroker) -> None:
    broker.call(broker.broker.compactor.check())


def test_a_consumer_gets_the_last_record_of_each_key_at_its_offset(ottla: EphemeralBroker) -> None:
    write(ottla, rounds=8)
    before = read(ottla)
    log = ottla.broker.topics.by_name["t"].partitions[0].log
    size = log.size

    compact(ottla)

    after = read(ottla)
    assert log.size < size / 2
    assert len(after) < len(before)
    assert {key: (offset, value) for offset, key, value in after} == {
        key: (offset, value) for offset, key, value in before
    }
    assert ottla.broker.compactor.passes == 1
    compact(ottla)
    assert ottla.broker.compactor.passes == 1, "compaction left nothing to do"


def test_the_compacted_position_survives_a_restart(ottla: EphemeralBroker) -> None:
    write(ottla, rounds=8)
    compact(ottla)
    before = read(ottla)
    ottla.restart()
    compact(ottla)
    assert ottla.broker.compactor.passes == 0
    assert read(ottla) == before
    assert b"t 0 " in (ottla.broker.data_dir.path / "cleaner-offset-checkpoint").read_bytes()


def test_records_without_a_key_are_refused(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t", configs=COMPACT)
    with package.Producer(ottla.bootstrap_servers) as producer:
        delivery = producer.send("t", b"x")
        with pytest.raises(BrokerError, match="key") as refused:
            delivery.result()
        assert refused.value.code == ErrorCode.INVALID_RECORD


def test_deleting_a_topic_during_compaction_is_harmless(
    ottla: EphemeralBroker, caplog: pytest.LogCaptureFixture
) -> None:
    write(ottla, rounds=4)

    async def delete_while_compacting(broker: Broker) -> None:
        compacting = asyncio.create_task(broker.compactor.check())
        await asyncio.sleep(0)
        broker.delete_topic(broker.topics.by_name["t"])
        await compacting

    ottla.call(delete_while_compacting(ottla.broker))
    assert caplog.records == []


def test_a_stop_does_not_wait_for_compaction() -> None:
    slowly = replace(Settings().broker, compaction_max_bytes_per_s=1)
    with EphemeralBroker(Settings(broker=slowly)) as broker:
        write(broker, rounds=4)

        async def begin_and_cancel(broker: Broker) -> None:
            compacting = asyncio.create_task(broker.compactor.check())
            await asyncio.sleep(0)
            compacting.cancel()

        broker.call(begin_and_cancel(broker.broker))


class WithReplicas(Standalone):
    """As if there were other replicas. The answers are given in turn; the last one is repeated."""

    __slots__ = ("answers",)

    answers: list[bool]

    @property
    def is_in_sync_everywhere(self) -> bool:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def keys_after_a_second_pass(broker: EphemeralBroker, answers: list[bool]) -> list[bytes | None]:
    """The keys of a log whose key "a" was deleted, with these answers during the second pass."""
    broker.create_topic("t", configs=COMPACT | {"delete.retention.ms": "0"})
    partition = broker.broker.topics.by_name["t"].partitions[0]
    role = WithReplicas(partition)
    role.answers = [True]
    partition.role = role

    async def roll() -> None:
        partition.log.roll()

    for rows in ((b"a", b"1"), (b"a", None)), ((b"b", b"1"),):
        with package.Producer(broker.bootstrap_servers) as producer:
            for key, value in rows:
                producer.send("t", value, key=key)
        broker.call(roll())
        compact(broker)
        role.answers = answers
    return [key for _, key, _ in read(broker)]


def test_a_tombstone_is_removed_when_all_replicas_are_in_sync(ottla: EphemeralBroker) -> None:
    assert keys_after_a_second_pass(ottla, [True]) == [b"b"]


def test_a_log_remembers_up_to_where_its_tombstones_are_removed(ottla: EphemeralBroker) -> None:
    keys_after_a_second_pass(ottla, [True])

    log = ottla.broker.topics.by_name["t"].partitions[0].log
    assert log.removed_tombstones.until == 2
    assert RemovedTombstones(log.folder, end=0).until == 2


def test_a_tombstone_is_kept_while_a_replica_is_not_in_sync(ottla: EphemeralBroker) -> None:
    assert keys_after_a_second_pass(ottla, [False]) == [b"a", b"b"]


def test_a_tombstone_is_kept_when_a_replica_leaves_the_isr_during_the_pass(ottla: EphemeralBroker) -> None:
    assert keys_after_a_second_pass(ottla, [True, False]) == [b"a", b"b"]
    assert ottla.broker.compactor.passes == 2, "the pass was repeated without removing tombstones"
