"""A worker's process: `python -m ottla.cli.workers.child`. What it is to be comes on its standard input."""

from __future__ import annotations

import pickle
import socket
import sys
from typing import TYPE_CHECKING, Final, cast

import msgspec

from ottla.broker.inherited import Inherited
from ottla.cli.logs import set_up_logging
from ottla.cli.ready import ready_facts
from ottla.cli.serve import run, serve_until_stopped
from ottla.cluster.builtin.link import CatalogLink
from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.cli.workers.plan import WorkerPlan
    from ottla.http.server import HttpServer

_PATIENCE_S: Final = 30.0
"""With a supervisor that is there and silent. Nobody else leads meanwhile, so nothing is at stake but time."""


def main() -> None:
    # Only the supervisor can write to it: this process is its child.
    plan = cast("WorkerPlan", pickle.load(sys.stdin.buffer))  # noqa: S301
    set_up_logging(*plan.logging, worker=plan.number)
    catalog = CatalogLink(socket.socket(fileno=plan.catalog), _PATIENCE_S)
    bound = [[socket.socket(fileno=each) for each in listener] for listener in plan.bound]
    try:
        run(serve_until_stopped(plan.configs, _tell_supervisor, Inherited(catalog, bound)))
    except OttlaError as refused:
        sys.exit(f"ottla: worker {plan.number}: {refused}")


def _tell_supervisor(broker: Broker, http: HttpServer | None) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(ready_facts(broker, http)) + b"\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
