"""Topic names and ids in requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.wire.declare import NO_UUID

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.wire.messages.metadata import MetadataRequest

_NAMELESS_SINCE: Final = 12
"""The first version with topic ids and optional names."""


def topic_name(broker: Broker, item: object) -> str | None:
    """The name of a topic that part of a request gives by name or id; None without a name, or for an unknown id."""
    topic_id = getattr(item, "topic_id", NO_UUID)
    if topic_id == NO_UUID:
        return getattr(item, "name", None) or getattr(item, "topic", None) or None
    state = broker.topics.by_id.get(topic_id)
    return None if state is None else state.name


def is_by_id_too_early(request: MetadataRequest, version: int) -> bool:
    """Whether the request uses topic ids in a version that has the field, but in which Kafka ignores it."""
    if version >= _NAMELESS_SINCE:
        return False
    return any(wanted.topic_id != NO_UUID or wanted.name is None for wanted in request.topics or ())
