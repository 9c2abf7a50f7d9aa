"""Unauthorized requests over SASL, by users who each lack one permission."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, structs
from tests.security.api_samples import SAMPLES, TOPIC, TOPIC_ID, Needed, Sample

from ottla.storage.catalog.entries import AclOperation, AclPermission, ResourceType
from ottla.wire.codec import decode_response, encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from ottla.wire.declare import Request

HUNG_UP = "hung up"
PASSWORD = "secret"  # noqa: S105 - of users that live as long as a test
TIMEOUT_S = 30.0
_SIZE = struct.Struct(">i")
_LITERAL = 3
_OF_EACH_BROKER = frozenset({"error_message", "brokers", "cluster_id", "controller_id"})
"""Fields that may differ. Kafka's messages are null, or hold the whole request as Java prints it."""


class Case(NamedTuple):
    user: str
    sample: Sample
    missing: Needed

    def __str__(self) -> str:
        operation, (kind, _) = self.missing
        return f"{self.sample.request.API.name} without {operation.name} on {kind.name}"

    def acls(self) -> Iterator[AclCreation]:
        for operation, (kind, name) in self.sample.needed:
            if (operation, (kind, name)) != self.missing:
                yield AclCreation(
                    resource_type=kind,
                    resource_name=name,
                    resource_pattern_type=_LITERAL,
                    principal=f"User:{self.user}",
                    host="*",
                    operation=operation,
                    permission_type=AclPermission.ALLOW,
                )


def is_unanswered(sample: Sample) -> bool:
    """Whether Kafka fails internally on this refusal and never answers."""
    return isinstance(sample.request, DescribeUserScramCredentialsRequest) and sample.request.users is None


_OTHERS = ResourceType.GROUP, "others"
_GROUP_AND_TOPIC = (AclOperation.DESCRIBE, _OTHERS), (AclOperation.DESCRIBE, TOPIC)
_committed = OffsetFetchRequestTopics(name="orders", topic_id=TOPIC_ID, partition_indexes=(0,))
PARTLY = (
    Sample(
        OffsetFetchRequest(group_id="others", topics=(OffsetFetchRequestTopic(name="orders", partition_indexes=(0,)),)),
        7,
        _GROUP_AND_TOPIC,
    ),
    Sample(
        OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="others", topics=(_committed,)),)),
        9,
        _GROUP_AND_TOPIC,
    ),
)
"""Requests of which a part is answered: what is hidden is in the answer."""

CASES = [
    Case(f"user{number}", sample, missing)
    for number, (sample, missing) in enumerate(
        (sample, missing) for sample in (*SAMPLES, *PARTLY) for missing in sample.needed if not is_unanswered(sample)
    )
]


def acls_of_all() -> CreateAclsRequest:
    return CreateAclsRequest(creations=tuple(acl for case in CASES for acl in case.acls()))


class Denied:
    """A connection of one user, for requests that may end with the broker hanging up."""

    def __init__(self, address: str, user: str, topic_id: bytes) -> None:
        self._address = address
        self._user = user
        self._topic_id = topic_id
        self._socket = self._log_in()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def _log_in(self) -> socket.socket:
        host, _, port = self._address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = self._exchange(SaslAuthenticateRequest(auth_bytes=f"\0{self._user}\0{PASSWORD}".encode()), 2)
        assert answer.error_code == 0, answer
        return self._socket

    def versions(self) -> Mapping[int, range]:
        keys = self._exchange(ApiVersionsRequest(), 2).api_keys
        return {one.api_key: range(one.min_version, one.max_version + 1) for one in keys}

    def ask(self, request: Request, version: int) -> object:
        """The answer as plain values, in which the topic has the id that samples use; HUNG_UP if there is none."""
        try:
            answer = self._exchange(request, version)
        except (ConnectionError, EOFError):
            self._socket.close()
            self._log_in()
            return HUNG_UP
        return self._plain(answer)

    def _exchange(self, request: Any, version: int) -> Any:  # noqa: ANN401 - of whatever API
        frame = b"".join(encode_request(request, version, 1, "interop"))
        self._socket.sendall(frame.replace(TOPIC_ID, self._topic_id))
        [size] = _SIZE.unpack(self._read(_SIZE.size))
        return decode_response(request, version, 1, memoryview(bytearray(self._read(size))))

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def _plain(self, value: object) -> object:
        if isinstance(value, Struct):
            return {name: self._plain(one) for name, one in structs.asdict(value).items()}
        if isinstance(value, tuple):
            return [self._plain(one) for one in value]
        if isinstance(value, bytes | bytearray | memoryview):
            return TOPIC_ID if bytes(value) == self._topic_id else bytes(value)
        return value


def is_in_version(request: Any, version: int) -> bool:  # noqa: ANN401
    """Whether the request can be said in this version."""
    with contextlib.suppress(Exception):
        encode_request(request, version, 1, "interop")
        return True
    return False


def differences(path: str, theirs: object, ours: object) -> Iterator[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in theirs:
            if name in _OF_EACH_BROKER:
                continue
            yield from differences(f"{path}.{name}", theirs[name], ours[name])
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for each, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(f"{path}[{each}]", one, other)
    elif theirs != ours:
        yield f"{path}: Kafka {theirs!r}, Ottla {ours!r}"
