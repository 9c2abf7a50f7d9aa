"""Single requests to a broker in any version, encoded by Ottla's wire package."""

import socket
import time
from types import TracebackType
from typing import Any, Self, TypeVar

from ottla.core.errors import ErrorCode
from ottla.wire.codec import RequestFor, decode_response, encode_request
from ottla.wire.declare import Request, Response
from ottla.wire.frame import FrameParser
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest

ANSWER_TIMEOUT_S = 30.0
RECEIVE_BYTES = 1 << 16

ResponseT = TypeVar("ResponseT", bound=Response)


class RawClient:
    """One connection. `send` and `receive` where an answer is kept waiting, `ask` where it is not."""

    def __init__(self, bootstrap: str, client_id: str = "raw") -> None:
        self.bootstrap = bootstrap
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), ANSWER_TIMEOUT_S)
        self._client_id = client_id
        self._frames = FrameParser()
        self._sent: list[tuple[Request, int, int]] = []
        self._count = 0

    def send(self, request: Request, version: int) -> None:
        self._count += 1
        self._socket.sendall(b"".join(encode_request(request, version, self._count, self._client_id)))
        self._sent.append((request, version, self._count))

    def receive(self) -> Response:
        """The answer to the earliest request that has none yet."""
        request, version, number = self._sent.pop(0)
        frames: list[memoryview] = []
        while not frames:
            data = self._socket.recv(RECEIVE_BYTES)
            if not data:
                raise ConnectionError(f"the broker hung up on {request}")
            frames = self._frames.feed(data)
        to: Any = request
        response: Response = decode_response(to, version, number, frames[0])
        return response

    def ask(self, request: RequestFor[ResponseT], version: int) -> ResponseT:
        sent: Any = request
        self.send(sent, version)
        response: Any = self.receive()
        answered: ResponseT = response
        return answered

    def fileno(self) -> int:
        """For `select`."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def wait_for_coordinator(client: RawClient) -> None:
    """The first request makes the broker create and load `__consumer_offsets`, which takes a while."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    stranger = HeartbeatRequest(group_id="nobody", generation_id=0, member_id="nobody")
    while time.monotonic() < deadline:
        found = client.ask(FindCoordinatorRequest(key="nobody"), 1).error_code == ErrorCode.NONE
        if found and client.ask(stranger, 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            return
        time.sleep(0.01)
    raise TimeoutError("the broker has no coordinator")
