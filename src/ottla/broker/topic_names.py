"""Topics as requests and answers name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.wire.declare import NO_UUID

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def topic_name(broker: Broker, item: Any) -> str | None:  # noqa: ANN401 - a part of a request, with a name or an id
    """The name of what is asked about by name or by id; None for an id that nobody has."""
    if getattr(item, "topic_id", NO_UUID) == NO_UUID:
        name: str | None = getattr(item, "name", None) or getattr(item, "topic", None)
        return name
    state = broker.topics.by_id.get(item.topic_id)
    return None if state is None else state.name
