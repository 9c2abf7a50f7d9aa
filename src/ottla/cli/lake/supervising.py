"""Runs the writer process while this broker leads topics with `ottla.table.enable`, and restarts it if it ends."""

from __future__ import annotations

import asyncio
import logging
import pickle
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.cli.lake.plan import writer_plan
from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.cli.lake.plan import WriterPlan
    from ottla.cli.workers.plan import Configs, Logging

_log: Final = logging.getLogger("ottla.lake")
_PREFIX: Final = "ottla.table."
_LOOK_AGAIN_S: Final = 5.0
_FIRST_PAUSE_S: Final = 1.0
_LAST_PAUSE_S: Final = 60.0
_STEADY_S: Final = 60.0
"""After a process that lived longer, the pauses before restarts begin again with the first."""
_PATIENCE_S: Final = 10.0
"""More than the process takes to end after its input is closed."""


class TableWriter:
    """Of a broker: created when the first topic needs it."""

    def __init__(self, broker: Broker, configs: Configs, logging: Logging) -> None:
        self._broker = broker
        self._configs = configs
        self._logging = logging
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._is_warned = False
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        """None while no process runs."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    def start(self) -> None:
        """Called whenever a topic with a table was created or changed."""
        self._changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._supervise())
            self._task.add_done_callback(_report_failure)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._end()

    async def _supervise(self) -> None:
        """Until no topic has a table."""
        pause_s = _FIRST_PAUSE_S
        loop = asyncio.get_running_loop()
        while any(state.config.has_table for state in self._broker.topics.by_name.values()):
            plan = self._plan() if self._wanted() else None
            if plan is None:
                await asyncio.sleep(_LOOK_AGAIN_S)
                continue
            began_s = loop.time()
            try:
                status = await self._run(plan)
            except OSError as failed:  # no memory or no descriptors for a process
                how = f"not started: {failed}"
            else:
                if status is None:
                    continue
                how = _spoken(status)
            pause_s = _FIRST_PAUSE_S if loop.time() - began_s > _STEADY_S else pause_s
            self.restarts += 1
            _log.error("table writer exited (%s), restarting it in %g s", how, pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LAST_PAUSE_S)

    def _wanted(self) -> dict[str, dict[str, str]]:
        """The configs by topic of the tables that this node writes: those whose partition 0 it leads."""
        return {
            state.name: {name: text for name, text in state.entry.configs.items() if name.startswith(_PREFIX)}
            for state in self._broker.topics.by_name.values()
            if state.config.has_table and not state.entry.is_internal and state.partitions[0].leads
        }

    def _plan(self) -> WriterPlan | None:
        """None if it cannot be started; the reason is logged once."""
        try:
            return writer_plan(self._broker, self._configs.lake, self._configs.config_file, self._logging)
        except OttlaError as refused:
            if not self._is_warned:
                self._is_warned = True
                _log.warning("ottla.table.enable has no effect: %s", refused)
            return None

    async def _run(self, plan: WriterPlan) -> int | None:
        """The exit status; None if it was stopped because this node has no tables to write any more."""
        process = self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ottla.cli.lake.child"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert process.stdin is not None  # noqa: S101 - for mypy: it is a pipe
        # Not closed: the end of its input is how the process notices that the broker is gone.
        process.stdin.write(pickle.dumps(plan))
        _log.info("table writer started: process %d", process.pid)
        told: dict[str, dict[str, str]] = {}
        ended = asyncio.ensure_future(process.wait())
        ended.add_done_callback(lambda _: self._changed.set())
        while wanted := self._wanted():
            if wanted != told:
                told = wanted
                process.stdin.write(msgspec.json.encode(told) + b"\n")
            # Changes of leaders are not announced.
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_AGAIN_S):
                    await self._changed.wait()
            self._changed.clear()
            if ended.done():
                return ended.result()
        await self._end()
        return None

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await process.wait()
        except TimeoutError:
            _log.warning("table writer did not stop in time, killing it")
            process.kill()
            await process.wait()


def _report_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (failed := task.exception()) is not None:
        _log.error("the table writer is no longer supervised", exc_info=failed)


def _spoken(status: int) -> str:
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
