"""What clients sent: every request as it was decoded, in the order in which they came."""

from __future__ import annotations

import difflib
import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict, overload

from ottla.testing.subjects import groups_of, subjects_of
from ottla.wire.apis import APIS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.testing.subjects import Subject
    from ottla.wire.declare import Request

_MOST_KEPT: Final = 100_000
_NAMES: Final = frozenset(api.name for api in APIS.values())


@dataclass(frozen=True, slots=True)
class SeenRequest:
    api: str
    """By Kafka's name, such as Produce."""
    version: int
    client_id: str
    body: Request
    about: tuple[Subject, ...]
    """The topics and partitions that it names."""
    groups: tuple[str, ...]


class Where(TypedDict, total=False):
    """Which requests are meant; what is left out does not matter."""

    api: str
    topic: str
    partition: int
    client_id: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    api: str | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if self.api is not None and self.api not in _NAMES:
            close = difflib.get_close_matches(self.api, _NAMES, 1)
            raise ValueError(f"there is no API {self.api!r}" + (f"; {close[0]!r} is meant?" if close else ""))

    def matches(self, seen: SeenRequest) -> bool:
        return (
            self.api in (None, seen.api)
            and self.client_id in (None, seen.client_id)
            and (self.group is None or self.group in seen.groups)
            and (not self.names_partitions or any(map(self.covers, seen.about)))
        )

    @property
    def names_partitions(self) -> bool:
        return self.topic is not None or self.partition is not None

    def covers(self, subject: Subject) -> bool:
        return self.topic in (None, subject.topic) and self.partition in (None, subject.partition)

    def __str__(self) -> str:
        named = {name: getattr(self, name) for name in Where.__optional_keys__}
        said = ", ".join(f"{name}={named[name]!r}" for name in sorted(named) if named[name] is not None)
        return said or "all requests"


class History(Sequence[SeenRequest]):
    """The latest hundred thousand requests. May be looked at from any thread."""

    def __init__(self) -> None:
        self._seen: deque[SeenRequest] = deque(maxlen=_MOST_KEPT)
        self._changed = threading.Condition()

    def add(self, broker: Broker, request: Request, context: Context) -> SeenRequest:
        seen = SeenRequest(
            api=request.API.name,
            version=context.version,
            client_id=context.client_id,
            body=request,
            about=subjects_of(broker, request),
            groups=groups_of(request),
        )
        with self._changed:
            self._seen.append(seen)
            self._changed.notify_all()
        return seen

    def __len__(self) -> int:
        return len(self._seen)

    @overload
    def __getitem__(self, at: int) -> SeenRequest: ...
    @overload
    def __getitem__(self, at: slice) -> list[SeenRequest]: ...
    def __getitem__(self, at: int | slice) -> SeenRequest | list[SeenRequest]:
        return self._copy()[at]

    def __iter__(self) -> Iterator[SeenRequest]:
        return iter(self._copy())

    def _copy(self) -> list[SeenRequest]:
        with self._changed:
            return list(self._seen)

    def of(self, **where: Unpack[Where]) -> list[SeenRequest]:
        """Those that match, such as `requests.of(api="OffsetCommit", group="billing")`."""
        wanted = Filter(**where)
        return [seen for seen in self._copy() if wanted.matches(seen)]

    def wait_for(self, count: int = 1, *, timeout_s: float = 10.0, **where: Unpack[Where]) -> list[SeenRequest]:
        """Those that match, once there are so many."""
        wanted = Filter(**where)

        def found() -> list[SeenRequest]:
            return [seen for seen in self._seen if wanted.matches(seen)]

        with self._changed:
            if self._changed.wait_for(lambda: len(found()) >= count, timeout_s):
                return found()
            came = Counter(seen.api for seen in self._seen)
            raise TimeoutError(
                f"{len(found())} of {count} requests with {wanted} came in {timeout_s:g} s; of all APIs: {dict(came)}"
            )

    def clear(self) -> None:
        with self._changed:
            self._seen.clear()
