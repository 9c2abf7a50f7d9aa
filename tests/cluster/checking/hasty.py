"""`ottla` with a planted bug: a leader acknowledges before replication. The checker must catch it."""

from __future__ import annotations

import asyncio

from ottla.broker.replication.roles import Leader
from ottla.cli.main import main


def _at_once(_leader: Leader, _last_offset: int, _timeout_s: float) -> asyncio.Future[None]:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


if __name__ == "__main__":
    Leader.replicated = _at_once  # type: ignore[method-assign]
    main()
