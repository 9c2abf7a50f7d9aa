from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from ottla.wire.apis import Api
from ottla.wire.declare import Message

_HeaderT = TypeVar("_HeaderT")
_MessageT = TypeVar("_MessageT", bound=Message)

def unwritten(size: int, /) -> bytearray: ...

class ReadStep:
    def __init__(
        self,
        kind: str,
        *,
        what: str,
        path: str,
        is_nullable: bool,
        is_flexible: bool,
        element: ReadStep | None = None,
        plan: ReadPlan[Message] | None = None,
        smallest: int = 0,
        tag: int = -1,
        default: object = None,
    ) -> None: ...

class ReadPlan(Generic[_MessageT]):
    def __init__(
        self,
        struct: type[_MessageT],
        what: str,
        steps: list[ReadStep],
        tagged: list[ReadStep],
        *,
        is_flexible: bool,
        may_go_on: bool,
        room: int,
    ) -> None: ...
    def decode(self, data: memoryview, position: int, /) -> _MessageT: ...

class HeaderReader(Generic[_HeaderT]):
    def __init__(self, header: Callable[..., _HeaderT], apis: Mapping[int, tuple[Api, int]]) -> None: ...
    def read(self, frame: memoryview, /) -> _HeaderT: ...
