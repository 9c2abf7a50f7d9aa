"""Filters of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

import msgspec

from ottla.broker.faults.subjects import groups_of, subjects_of
from ottla.core.closest import closest
from ottla.wire.apis import APIS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.faults.subjects import Subject
    from ottla.broker.requests.context import Context
    from ottla.wire.declare import Request

_NAMES: Final = frozenset(api.name for api in APIS.values())


class SeenRequest(msgspec.Struct, frozen=True):
    api: str
    """Kafka's name of the API, such as Produce."""
    version: int
    client_id: str
    body: Request
    about: tuple[Subject, ...]
    """The topics and partitions in the request."""
    groups: tuple[str, ...]

    @classmethod
    def of(cls, broker: Broker, request: Request, context: Context) -> SeenRequest:
        return cls(
            api=request.API.name,
            version=context.version,
            client_id=context.client_id,
            body=request,
            about=subjects_of(broker, request),
            groups=groups_of(request),
        )


class Where(TypedDict, total=False):
    """A filter of requests; omitted criteria match everything."""

    api: str
    topic: str
    partition: int
    client_id: str
    group: str
    transactional_id: str


def guess(name: str, known: Iterable[str]) -> str:
    """Suggest the closest known name."""
    close = closest(name, known)
    return "" if close is None else f"; did you mean {close!r}?"


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    api: str | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    group: str | None = None
    transactional_id: str | None = None
    apis: frozenset[str] = _NAMES
    """The APIs that a fault of several APIs applies to."""

    def __post_init__(self) -> None:
        if self.api is not None and self.api not in _NAMES:
            raise ValueError(f"unknown API {self.api!r}{guess(self.api, _NAMES)}")

    def matches(self, seen: SeenRequest) -> bool:
        return (
            self.api in (None, seen.api)
            and seen.api in self.apis
            and self.client_id in (None, seen.client_id)
            and (self.group is None or self.group in seen.groups)
            and self.transactional_id in (None, getattr(seen.body, "transactional_id", None))
            and (not self.names_partitions or any(map(self.covers, seen.about)))
        )

    @property
    def names_partitions(self) -> bool:
        return self.topic is not None or self.partition is not None

    def covers(self, subject: Subject) -> bool:
        return self.topic in (None, subject.topic) and self.partition in (None, subject.partition)

    @property
    def named(self) -> dict[str, str | int]:
        """The given criteria."""
        values = ((name, getattr(self, name)) for name in sorted(Where.__optional_keys__))
        return {name: value for name, value in values if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.named.items()) or "all requests"
