"""Messages between workers and their supervisor's catalog: length-prefixed MessagePack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from ottla.cluster.builtin.tree import Aspect  # noqa: TC001 - looked up when messages are read
from ottla.cluster.operations import Check, Create, Delete, Node, Put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.cluster.operations import Operation

LENGTH_BYTES: Final = 4


class ReadNode(msgspec.Struct, array_like=True, tag="look"):
    id: int
    path: str
    is_watched: bool


class WatchNode(msgspec.Struct, array_like=True, tag="look_out"):
    id: int
    path: str


class ListChildren(msgspec.Struct, array_like=True, tag="list"):
    id: int
    path: str


class Commit(msgspec.Struct, array_like=True, tag="commit"):
    id: int
    operations: list[tuple[str, str, bytes, int]]


Request: TypeAlias = ReadNode | WatchNode | ListChildren | Commit


class Welcome(msgspec.Struct, array_like=True, tag="welcome"):
    session_id: int


class Found(msgspec.Struct, array_like=True, tag="found"):
    """A node, or None if it does not exist."""

    id: int
    node: Node | None


class Listed(msgspec.Struct, array_like=True, tag="listed"):
    id: int
    names: list[str] | None


class Done(msgspec.Struct, array_like=True, tag="done"):
    id: int


class ConflictAt(msgspec.Struct, array_like=True, tag="misfit"):
    """The operation at this index failed; nothing was changed."""

    id: int
    index: int


class Failed(msgspec.Struct, array_like=True, tag="failed"):
    id: int
    why: str


class Changed(msgspec.Struct, array_like=True, tag="changed"):
    """Notification that a watch fired."""

    aspect: Aspect
    path: str


Answer: TypeAlias = Found | Listed | Done | ConflictAt | Failed
ServerMessage: TypeAlias = Welcome | Found | Listed | Done | ConflictAt | Failed | Changed

_encoder: Final = msgspec.msgpack.Encoder()
read_request: Final = msgspec.msgpack.Decoder(Request).decode
read_server_message: Final = msgspec.msgpack.Decoder(ServerMessage).decode


def framed(message: Request | ServerMessage) -> bytes:
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH_BYTES) + body


def pack(operations: Sequence[Operation]) -> list[tuple[str, str, bytes, int]]:
    packed = []
    for each in operations:
        match each:
            case Create():
                packed.append(("create", each.path, each.data, int(each.is_ephemeral)))
            case Put():
                packed.append(("put", each.path, each.data, each.version))
            case Delete():
                packed.append(("delete", each.path, b"", each.version))
            case Check():
                packed.append(("check", each.path, b"", each.version))
    return packed


def unpack(packed: Sequence[tuple[str, str, bytes, int]]) -> list[Operation]:
    return [_operation(*each) for each in packed]


def _operation(kind: str, path: str, data: bytes, number: int) -> Operation:
    match kind:
        case "create":
            return Create(path, data, is_ephemeral=bool(number))
        case "put":
            return Put(path, data, number)
        case "delete":
            return Delete(path, number)
        case _:
            return Check(path, number)
