"""Wraps every handler of a broker: records requests, and applies faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ottla.broker.faults.effects import Call
from ottla.broker.faults.filters import SeenRequest
from ottla.broker.requests.fetch_sessions import FetchSessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker
    from ottla.broker.faults.faults import Faults
    from ottla.broker.requests.answers import Handler
    from ottla.broker.requests.context import Client, Context
    from ottla.wire.apis import Api
    from ottla.wire.declare import Request


def watch(
    broker: Broker, faults: Faults, note: Callable[[SeenRequest], None] | None = None, own: Client | None = None
) -> None:
    """Start watching. Requests with the client id `own` are the watcher's: they are not recorded and get no faults."""

    def around(_api: Api, handler: Handler) -> Handler:
        def watched(broker: Broker, request: Request, context: Context) -> object:
            if context.connection is own:
                return handler(broker, request, context)
            seen = SeenRequest.of(broker, request, context)
            if note is not None:
                note(seen)
            effect = faults.effect_on(seen)
            if effect is None:
                return handler(broker, request, context)
            return effect(Call(handler, broker, request, context))

        return cast("Handler", watched)

    faults.watch(broker)
    broker.faults = faults
    # Without fetch sessions every fetch lists its partitions, so that they can be recorded and matched.
    broker.fetch_sessions = FetchSessions(0)
    broker.dispatcher.around = around
    broker.dispatcher.reload_handlers()
