from ottla.wire.declare import AnyBytes, Message, Sendable

class WriteStep:
    def __init__(
        self,
        kind: str,
        *,
        path: str,
        is_nullable: bool,
        is_flexible: bool,
        element: WriteStep | None = None,
        plan: WritePlan | None = None,
        size: int = 0,
        tag: int = -1,
        default: object = None,
    ) -> None: ...

class WritePlan:
    def __init__(self, what: str, steps: list[WriteStep], tagged: list[WriteStep], *, is_flexible: bool) -> None: ...
    def encode(self, message: Message, before: bytearray, /) -> list[AnyBytes]: ...
    def encode_framed(self, message: Message, before: bytearray, /) -> list[AnyBytes]: ...
    def encode_response(self, message: Message, correlation_id: int, /) -> list[Sendable]: ...
    def encode_flexible_response(self, message: Message, correlation_id: int, /) -> list[Sendable]: ...
