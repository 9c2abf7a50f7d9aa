"""The driver's part of a write: commits or aborts the transactions of all tasks. A micro-batch is committed in three
steps: check that every transaction is open; store the decision to commit them; commit them. Before the second step
nothing is committed, and a repetition writes again. After it, a repetition of the micro-batch only commits and writes
nothing, whichever step the driver died in.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from msgspec import structs

from ottla.client.errors import ClientError
from ottla.spark.errors import SinkError
from ottla.spark.writer.decisions import Decision, read_decision, write_decision
from ottla.spark.writer.transactions import TransactionEnds

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ottla.client.client import Client
    from ottla.spark.writer.transactions import Prepared

_log: Final = logging.getLogger(__name__)


class Commit:
    """The end of one batch or micro-batch."""

    def __init__(self, client: Client, query_id: str, timeout_ms: int) -> None:
        self._admin = client.admin
        self._query_id = query_id
        self._timeout_ms = timeout_ms
        self._ends = TransactionEnds(client.router, query_id)

    # A batch

    async def commit_all(self, prepared: Sequence[Prepared]) -> None:
        await self._check_are_open(prepared)
        if aborted := await self._committed(prepared):
            raise SinkError(
                f"the rows of tasks {_tasks(aborted)} are not written: their transactions timed out while those "
                "of the others were committed"
            )
        await self._tidy(prepared)

    async def abort_all(self, prepared: Sequence[Prepared]) -> None:
        outcomes = await asyncio.gather(*(self._ends.abort(each) for each in prepared), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                _log.warning("could not abort a transaction; it will time out: %s", outcome)

    # A micro-batch

    async def is_written(self, batch: int, task: int) -> bool | None:
        """Whether an earlier attempt committed this task's rows; None if there is no decision on the micro-batch."""
        decision = await read_decision(self._admin, self._query_id, batch)
        if decision is None:
            return None
        if decision.batch > batch:
            return True
        own = [each for each in decision.prepared if each.task == task]
        return all([await self._ends.commit(each) for each in own])

    async def commit_new(self, batch: int, prepared: Sequence[Prepared], task_count: int) -> None:
        """Decide to commit, in the first attempt."""
        if prepared:
            await self._check_are_open(prepared)
            await self._carry_out(Decision(batch, task_count, tuple(prepared)))

    async def commit_repeated(
        self, batch: int, prepared: Sequence[Prepared], task_count: int, settled: Collection[int]
    ) -> None:
        """Carry out an earlier decision; the `settled` tasks have committed their part themselves."""
        before = await read_decision(self._admin, self._query_id, batch)
        if before is None or before.batch > batch:
            await self.commit_new(batch, prepared, task_count)
            return
        if prepared and before.task_count != task_count:
            raise SinkError(
                f"micro-batch {batch} was written in part by {before.task_count} tasks and is repeated by "
                f"{task_count}, so the missing rows are unknown; repeat it with the same number of tasks"
            )
        anew = {each.task for each in prepared}
        kept = [each for each in before.prepared if each.task not in anew]
        if aborted := await self._committed([each for each in kept if each.task not in settled]):
            raise SinkError(f"the rows of tasks {_tasks(aborted)} of micro-batch {batch} are lost: {_WHY_LOST}")
        if prepared:
            await self._check_are_open(prepared)
            again = structs.replace(before, prepared=(*kept, *prepared), revision=before.revision + 1)
            await self._carry_out(again)

    async def abort_micro_batch(self, batch: int, prepared: Sequence[Prepared]) -> None:
        """Abort, except what is decided to be committed: Spark may give up during the commit."""
        try:
            decision = await read_decision(self._admin, self._query_id, batch)
            decided = () if decision is None else decision.prepared
            await self.abort_all([each for each in prepared if each not in decided])
        except ClientError as failed:
            _log.warning("could not abort the transactions of micro-batch %d; they will time out: %s", batch, failed)

    async def roll_back_rest(self) -> None:
        """Abort open transactions of a committed write: those of tasks that were not repeated."""
        try:
            await self._ends.abort_left_open(await self._admin.list_transactions(states=["Ongoing"]), self._timeout_ms)
        except ClientError as failed:
            _log.warning("transactions of an earlier call may stay open until they time out: %s", failed)

    # Both

    async def _carry_out(self, decision: Decision) -> None:
        await write_decision(self._admin, self._query_id, decision)
        if aborted := await self._committed(decision.prepared):
            raise SinkError(
                f"the transactions of tasks {_tasks(aborted)} were aborted while those of the others were committed; "
                f"start the query (or the write with this writeId) again, and micro-batch {decision.batch} is completed"
            )
        await self._tidy(decision.prepared)

    async def _check_are_open(self, prepared: Sequence[Prepared]) -> None:
        await asyncio.gather(*(self._ends.check_is_open(each) for each in prepared))

    async def _committed(self, prepared: Sequence[Prepared]) -> list[Prepared]:
        """Commit these transactions; returns those that were aborted."""
        outcomes = await asyncio.gather(*(self._ends.commit(each) for each in prepared))
        return [each for each, is_committed in zip(prepared, outcomes, strict=True) if not is_committed]

    async def _tidy(self, prepared: Sequence[Prepared]) -> None:
        for each in prepared:
            try:
                await self._ends.fence_earlier_attempts(each, self._timeout_ms)
            except ClientError as failed:
                _log.warning("an earlier attempt of task %d may leave a transaction open: %s", each.task, failed)


_WHY_LOST: Final = "it is repeated by fewer tasks than wrote it, and their transactions were aborted"


def _tasks(prepared: Collection[Prepared]) -> str:
    return ", ".join(str(each.task) for each in prepared)
