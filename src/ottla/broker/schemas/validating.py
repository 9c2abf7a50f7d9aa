"""Validation of produced records by their schema ids: `confluent.value.schema.validation` and related configs.

A batch whose ids are known to be valid is accepted at once. Otherwise the registry is read to its end first; records
that are invalid then are rejected, or written to the dead-letter topic.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.batches.inflating import AT_ONCE_BYTES
from ottla.broker.batches.letters import PREFIX, Letters
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.schemas.store import UnguardedClient
from ottla.core.errors import ApiError, InvalidRecords
from ottla.records.compression import DecompressedTooLarge
from ottla.records.reader import RecordReader
from ottla.records.thinned import thinned
from ottla.registry.validation import ID_BYTES, SubjectRule
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.broker.batches.topic_rules import Prepared
    from ottla.broker.broker import Broker
    from ottla.broker.configs.topic_config import SchemaRule
    from ottla.broker.schemas.store import Store
    from ottla.core.ids import TopicPartition
    from ottla.records.reader import Record
    from ottla.registry.state import State

_TIMEOUT_MS: Final = 10_000
_PRODUCE_BY_NAME: Final = 12
_SHOWN: Final = 3
_NO_TIMESTAMP: Final = -1


class _Problem(NamedTuple):
    at: int
    """The record's index in the batch."""
    record: Record
    message: str


class _Rules(NamedTuple):
    """The schema rules of a topic, in one state of the registry."""

    state: State
    key: SubjectRule | None
    value: SubjectRule | None

    def accept(self, records: Iterable[Record]) -> bool:
        """Whether all of them are valid; most have ids that were seen before."""
        problem = self.problem
        known = frozenset() if self.value is None or self.key is not None else self.value.accepted
        for record in records:
            value = record.value
            if (value is None or value[:ID_BYTES] not in known) and problem(record) is not None:
                return False
        return True

    def problem(self, record: Record) -> str | None:
        """The problem with this value, if any; a null has no schema."""
        if self.value is not None and record.value is not None:
            found = self.value.problem(record.value, record.headers)
            if found is not None:
                return found
        if self.key is not None and record.key is not None:
            return self.key.problem(record.key, record.headers)
        return None


class SchemaValidation:
    def __init__(self, broker: Broker, store: Store) -> None:
        self.refused = 0
        self.buried = 0
        self._broker = broker
        self._store = store
        self._client = UnguardedClient(broker, "schema-validation", ("127.0.0.1", 0))
        self._rules: dict[tuple[str, SchemaRule], _Rules] = {}

    def accepts(self, topic: str, rule: SchemaRule, batch: memoryview | bytearray) -> bool:
        """Whether all records are known to be valid; False also if checking takes longer."""
        rules = self._rules_of(topic, rule)
        try:
            return rules.accept(RecordReader(batch, 0, AT_ONCE_BYTES))
        except DecompressedTooLarge:
            return False
        except ApiError:
            return True  # the log reports the error

    async def settled(self, at: TopicPartition, rule: SchemaRule, prepared: Prepared, limit: int) -> Prepared:
        """The valid part of the batch; other records became dead letters. Raises InvalidRecords."""
        await self._store.refresh()
        problems = await self._problems(at.topic, rule, prepared, limit)
        if problems:
            await self._store.refresh(is_needed=True)
            problems = await self._problems(at.topic, rule, prepared, limit)
        if not problems:
            return prepared
        if not rule.dead_letters or rule.dead_letters == at.topic:
            self.refused += len(problems)
            raise InvalidRecords(_text(problems), tuple((each.at, each.message) for each in problems))
        await self._bury(at, rule.dead_letters, problems)
        return prepared._replace(batch=_rest(prepared.batch, problems, limit), is_thinned=True)

    def _rules_of(self, topic: str, rule: SchemaRule) -> _Rules:
        state = self._store.state.snapshot()
        found = self._rules.get((topic, rule))
        if found is None or found.state is not state:
            key = None if rule.key is None else SubjectRule(state, topic, "key", rule.key)
            value = None if rule.value is None else SubjectRule(state, topic, "value", rule.value)
            found = self._rules[topic, rule] = _Rules(state, key, value)
        return found

    async def _problems(self, topic: str, rule: SchemaRule, prepared: Prepared, limit: int) -> list[_Problem]:
        rules = self._rules_of(topic, rule)

        def found() -> list[_Problem]:
            records = enumerate(RecordReader(prepared.batch, 0, limit))
            checked = ((index, record, rules.problem(record)) for index, record in records)
            return [_Problem(index, record, why) for index, record, why in checked if why is not None]

        try:
            return await asyncio.to_thread(found)
        except DecompressedTooLarge:
            raise
        except ApiError:
            return []  # the log reports the error

    async def _bury(self, at: TopicPartition, topic: str, problems: Sequence[_Problem]) -> None:
        """Write dead letters before the rest of the batch is acknowledged. A retried batch writes them again."""
        state = self._broker.topics.by_name.get(topic) or self._broker.create_topic(topic)
        letters = Letters(state.config.log.max_message_bytes)
        place = {"topic": at.topic, "partition": str(at.partition), "reason": "schema-validation"}
        for each in problems:
            why = place | {"error": each.message}
            letters.add(each.record, tuple((PREFIX + name, text.encode()) for name, text in why.items()))
        for batch in letters.built():
            index = at.partition % len(state.partitions)
            data = PartitionProduceData(index=index, records=memoryview(batch))
            topics = (TopicProduceData(name=topic, partition_data=(data,)),)
            request = ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=topics)
            answer = await self._client.ask(request, _PRODUCE_BY_NAME)
            [result] = answer.responses[0].partition_responses
            raise_refusal(result.error_code, f"could not write to the dead-letter topic: {result.error_message}")
        self.buried += len(problems)


def _text(problems: Sequence[_Problem]) -> str:
    shown = "; ".join(f"record {each.at}: {each.message}" for each in problems[:_SHOWN])
    more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return f"schema validation: {shown}{more}"


def _rest(batch: memoryview | bytearray, problems: Sequence[_Problem], limit: int) -> bytearray:
    dropped = {each.at for each in problems}
    kept = (record.timestamp for index, record in enumerate(RecordReader(batch, 0, limit)) if index not in dropped)
    return thinned(memoryview(batch), dropped, max(kept, default=_NO_TIMESTAMP), limit)
