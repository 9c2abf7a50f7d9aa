"""The topics, partitions and groups in a request, in whichever fields its API has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.topic_names import topic_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.broker import Broker
    from ottla.wire.declare import Request

_TOPICS: Final = ("topic_data", "topics", "topic_names")
_PARTITIONS: Final = ("partition_data", "partitions", "partition_indexes")
_INDEXES: Final = ("index", "partition", "partition_index")
_GROUPS: Final = ("groups", "groups_names", "coordinator_keys")
_OF_GROUPS: Final = 0


class Subject(NamedTuple):
    topic: str
    partition: int | None
    """None if the request is about the whole topic."""


def subjects_of(broker: Broker, request: Request) -> tuple[Subject, ...]:
    holders = [request, *(one for one in _listed(request, ("groups",)) if not isinstance(one, str))]
    return tuple(subject for holder in holders for topic in _listed(holder, _TOPICS) for subject in _in(broker, topic))


def _in(broker: Broker, topic: object) -> Iterator[Subject]:
    name = topic if isinstance(topic, str) else topic_name(broker, topic)
    if name is None:
        return
    partitions = partitions_in(topic)
    if not partitions:
        yield Subject(name, None)
    for one in partitions:
        yield Subject(name, index_of(one))


def partitions_in(topic: object) -> tuple[Any, ...]:
    return _listed(topic, _PARTITIONS)


def partition_field(topic: object) -> str | None:
    """The partitions field of a topic entry, if any."""
    return next((name for name in _PARTITIONS if isinstance(getattr(topic, name, None), tuple)), None)


def index_of(partition: object) -> int | None:
    if isinstance(partition, int):
        return partition
    return next((getattr(partition, name) for name in _INDEXES if hasattr(partition, name)), None)


def groups_of(request: Request) -> tuple[str, ...]:
    if getattr(request, "key_type", _OF_GROUPS) != _OF_GROUPS:
        return ()
    single = getattr(request, "group_id", None) or getattr(request, "key", None)
    if single:
        return (single,)
    return tuple(one if isinstance(one, str) else one.group_id for one in _listed(request, _GROUPS))


def _listed(holder: object, names: tuple[str, ...]) -> tuple[Any, ...]:
    return next((found for name in names if isinstance(found := getattr(holder, name, None), tuple) and found), ())
