"""Ids of write attempts, the same after a crash, so that a repeated write finds the records of the first one.

A task of a micro-batch always has the same producer id, derived from the query's id and the task's number. Brokers do
not assign producer ids in the upper half. The epoch counts micro-batches and attempts, so that a newer attempt fences
an older one that is still running. Pure rules.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

_OURS: Final = 1 << 62
_BATCH_BITS: Final = 12
_ATTEMPT_BITS: Final = 3
MOST_ATTEMPTS: Final = 1 << _ATTEMPT_BITS


@dataclass(frozen=True, slots=True)
class Attempt:
    query_id: str
    run_id: str
    batch_id: int
    task: int
    number: int
    """The number of earlier attempts at this task in this run."""

    @property
    def producer_id(self) -> int:
        # Epochs have 16 bits: after this many micro-batches they are exhausted, and another id is used.
        era = self.batch_id >> _BATCH_BITS
        digest = hashlib.blake2b(f"{self.query_id}/{self.task}/{era}".encode(), digest_size=8).digest()
        return _OURS | (int.from_bytes(digest) & (_OURS - 1))

    @property
    def first_epoch(self) -> int:
        return (self.batch_id & ((1 << _BATCH_BITS) - 1)) << _ATTEMPT_BITS

    def epoch_after(self, found: int | None) -> int | None:
        """The epoch of an attempt that may not be the first, given the highest found; None if there were too many."""
        least = self.first_epoch + 1 + self.number
        epoch = least if found is None else max(found + 1, least)
        return epoch if epoch < self.first_epoch + MOST_ATTEMPTS else None

    def is_of_this_batch(self, producer_id: int, epoch: int) -> bool:
        """Whether a batch of records in the log comes from this task and micro-batch."""
        return producer_id == self.producer_id and epoch >> _ATTEMPT_BITS == self.first_epoch >> _ATTEMPT_BITS

    @property
    def transactional_id(self) -> str:
        return transactional_id(self.query_id, self.task, self.number)

    @property
    def query_group(self) -> str:
        return query_group(self.query_id)

    @property
    def task_group(self) -> str:
        return f"{self.query_group}-{self.task}"


def query_group(query_id: str) -> str:
    return f"ottla-sink-{query_id}"


def transactional_id(query_id: str, task: int, attempt: int) -> str:
    """The same after a restart of the query, so that its open transactions are aborted; different for two attempts of
    one run, which Spark may run at the same time and commit either.
    """
    return f"ottla-sink-{query_id}-{task}" + (f"-{attempt}" if attempt else "")
