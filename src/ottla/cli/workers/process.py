"""A worker from its supervisor's view: started, ready, exited, restarted."""

from __future__ import annotations

import asyncio
import logging
import pickle
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.cli.workers.plan import Logging, WorkerPlan
from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from ottla.cli.workers.plan import Configs
    from ottla.cluster.builtin.keeper import Keeper

_logger: Final = logging.getLogger(__name__)

_STEADY_S: Final = 10.0
"""A worker that has run for this long is restarted at once; one that exits sooner, with exponential backoff."""
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 10.0
_SLACK_S: Final = 10.0
"""For closing logs, beyond the time that requests under way are given."""


class Worker:
    def __init__(self, number: int, configs: Configs, logged: Logging, bound: list[list[int]], keeper: Keeper) -> None:
        self.number = number
        self.facts: dict[str, Any] = {}
        """The addresses that it reported when ready."""
        self._configs = configs
        self._logged = logged
        self._bound = bound
        self._keeper = keeper
        self._process: asyncio.subprocess.Process | None = None
        self._is_asked_to_stop = False
        self._catalog: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Wait until it is ready; raises OttlaError if it exits, after logging the reason itself."""
        ours, its = socket.socketpair()
        with its:
            plan = WorkerPlan(self.number, self._configs, self._logged, its.fileno(), self._bound)
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "ottla.cli.workers.child"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=plan.descriptors,
                # The supervisor passes on interrupts from the terminal, in order. Not a separate session:
                # the kernel may share out its time by sessions, and a worker waits for another's turn then.
                process_group=0,
            )
        self._catalog = asyncio.create_task(self._keeper.serve(ours))
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - for mypy: both are pipes
        process.stdin.write(pickle.dumps(plan))
        process.stdin.close()
        line = await process.stdout.readline()
        if not line:
            await process.wait()
            raise OttlaError(f"worker {self.number} did not start")
        self.facts = msgspec.json.decode(line)

    async def keep_running(self) -> None:
        """Restart it whenever it exits."""
        loop = asyncio.get_running_loop()
        pause_s = _FIRST_PAUSE_S
        while True:
            since_s = loop.time()
            status = await self._ended()
            if loop.time() - since_s > _STEADY_S:
                pause_s = _FIRST_PAUSE_S
            _logger.error("worker %d exited (%s), restarting it", self.number, _spoken(status))
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            try:
                await self.start()
            except OttlaError as failed:
                _logger.error("%s", failed)  # noqa: TRY400 - why, it has said itself

    async def _ended(self) -> int:
        assert self._process is not None  # noqa: S101 - for mypy: it was started
        return await self._process.wait()

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def reload(self) -> None:
        """Reload certificates and keys."""
        self._send(signal.SIGHUP)

    def ask_to_stop(self) -> None:
        """Send the stop signal once: a second one would stop it at once."""
        if not self._is_asked_to_stop:
            self._is_asked_to_stop = True
            self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def stop(self) -> None:
        """Stop cleanly; kill it after a timeout."""
        if self._process is None:
            return
        self.ask_to_stop()
        try:
            async with asyncio.timeout(self._configs.settings.broker.drain_timeout_ms / 1000 + _SLACK_S):
                await self._process.wait()
        except TimeoutError:
            _logger.error("worker %d did not stop in time, killing it", self.number)  # noqa: TRY400
            self.kill()
            await self._process.wait()
        if self._catalog is not None:
            await self._catalog


def _spoken(status: int) -> str:
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
