"""The history of requests, decoded, in order."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, overload

from ottla.broker.faults.filters import Filter, SeenRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from ottla.broker.faults.filters import Where

_MOST_KEPT: Final = 100_000


class History(Sequence[SeenRequest]):
    """The latest hundred thousand requests. Thread-safe."""

    def __init__(self) -> None:
        self._seen: deque[SeenRequest] = deque(maxlen=_MOST_KEPT)
        self._changed = threading.Condition()

    def add(self, seen: SeenRequest) -> None:
        with self._changed:
            self._seen.append(seen)
            self._changed.notify_all()

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
        """The matching requests, such as `requests.of(api="OffsetCommit", group="billing")`."""
        wanted = Filter(**where)
        return [seen for seen in self._copy() if wanted.matches(seen)]

    def wait_for(self, count: int = 1, *, timeout_s: float = 10.0, **where: Unpack[Where]) -> list[SeenRequest]:
        """The matching requests, once there are `count`."""
        wanted = Filter(**where)

        def found() -> list[SeenRequest]:
            return [seen for seen in self._seen if wanted.matches(seen)]

        with self._changed:
            if self._changed.wait_for(lambda: len(found()) >= count, timeout_s):
                return found()
            came = Counter(seen.api for seen in self._seen)
            raise TimeoutError(
                f"got {len(found())} of {count} requests with {wanted} in {timeout_s:g} s; all by API: {dict(came)}"
            )

    def clear(self) -> None:
        with self._changed:
            self._seen.clear()
