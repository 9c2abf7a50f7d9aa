"""A worker's process: `python -m ottla.cli.workers.child`. Its settings come on standard input."""

from __future__ import annotations

import asyncio
import pickle
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

import msgspec

from ottla.broker.inherited import Inherited
from ottla.cli.server.logs import set_up_logging
from ottla.cli.server.ready import ready_facts
from ottla.cli.server.serve import Modes, serve_until_stopped
from ottla.cluster.builtin.link import CatalogLink
from ottla.cluster.state import NO_NODE
from ottla.core.errors import OttlaError
from ottla.event_loop import run

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.cli.workers.plan import WorkerPlan
    from ottla.cluster.state import ClusterView
    from ottla.http.server import HttpServer

_PATIENCE_S: Final = 30.0
"""The timeout for an unresponsive supervisor. No other leader is elected meanwhile, so it may be long."""
_MOST_UNTIL_SETTLED_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.01


def main() -> None:
    # Only the supervisor can write to it: this process is its child.
    plan = cast("WorkerPlan", pickle.load(sys.stdin.buffer))  # noqa: S301
    set_up_logging(*plan.logging, worker=plan.number)
    catalog = CatalogLink(socket.socket(fileno=plan.catalog), _PATIENCE_S)
    bound = [[socket.socket(fileno=each) for each in listener] for listener in plan.bound]
    telling: list[asyncio.Task[None]] = []

    def tell(broker: Broker, http: HttpServer | None) -> None:
        telling.append(asyncio.create_task(_tell_once_settled(broker, http, plan.configs.workers.count)))

    try:
        inherited = Inherited(catalog, bound, plan.configs.workers.count)
        run(serve_until_stopped(plan.configs, tell, inherited, Modes(logging=plan.logging)))
    except OttlaError as refused:
        sys.exit(f"ottla: worker {plan.number}: {refused}")


async def _tell_once_settled(broker: Broker, http: HttpServer | None, count: int) -> None:
    """That it is ready, once it can say who leads what; a partition that cannot be led is not waited for long."""
    cluster = broker.cluster
    with suppress(TimeoutError):
        async with asyncio.timeout(_MOST_UNTIL_SETTLED_S):
            while cluster is not None and not _is_settled(cluster.view, count):  # noqa: ASYNC110 - at the start alone
                await asyncio.sleep(_LOOK_AGAIN_S)
    sys.stdout.buffer.write(msgspec.json.encode(ready_facts(broker, http)) + b"\n")
    sys.stdout.flush()


def _is_settled(view: ClusterView, count: int) -> bool:
    """Wait for a controller and all workers: some clients cache the first metadata for minutes."""
    are_led = all(state.leader in view.brokers for state in view.partitions.values())
    return view.controller_id != NO_NODE and len(view.brokers) == count and are_led


if __name__ == "__main__":
    main()
