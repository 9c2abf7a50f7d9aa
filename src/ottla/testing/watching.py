"""Stands around every handler of a broker: notes what is asked, and lets go wrong what is to."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ottla.testing.effects import Call

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Client, Context
    from ottla.broker.dispatch import Handler
    from ottla.testing.faults import Faults
    from ottla.testing.history import History
    from ottla.wire.apis import Api
    from ottla.wire.declare import Request


class Watch:
    def __init__(self, history: History, faults: Faults, own: Client) -> None:
        """What `own` asks is the kit's own business: neither noted nor harmed."""
        self._history = history
        self._faults = faults
        self._own = own

    def around(self, _api: Api, handler: Handler) -> Handler:
        def watched(broker: Broker, request: Request, context: Context) -> object:
            if context.connection is self._own:
                return handler(broker, request, context)
            effect = self._faults.effect_on(self._history.add(broker, request, context))
            if effect is None:
                return handler(broker, request, context)
            return effect(Call(handler, broker, request, context))

        return cast("Handler", watched)
