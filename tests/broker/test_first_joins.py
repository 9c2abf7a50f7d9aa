"""The first members of a group join in the same turn of the broker's loop."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from ottla.core.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

from .making import create_topic
from .raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import ottla

    from .raw_client import Sent

MEMBERS = ("ann", "bob", "cid")


@pytest.fixture
def clients(broker: ottla.Broker) -> Iterator[list[RawClient]]:
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(broker.bootstrap_servers)) for _ in MEMBERS]
        for client in clients:
            client.ask(ApiVersionsRequest())
        yield clients


def send_together(broker: ottla.Broker, clients: Sequence[RawClient], requests: Sequence[Any]) -> list[Sent[Any]]:
    """Send while the broker's loop is busy: it then finds all the requests in one turn."""

    async def send_all() -> list[Sent[Any]]:
        return [client.send(request) for client, request in zip(clients, requests, strict=True)]

    return broker.call(send_all())


def ask_together(broker: ottla.Broker, clients: Sequence[RawClient], requests: Sequence[Any]) -> list[Any]:
    sent = send_together(broker, clients, requests)
    return [client.receive(one) for client, one in zip(clients, sent, strict=True)]


def consumer_beat(group: str, member: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
    joining = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": (group,), "topic_partitions": ()}
    return ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, **(joining if epoch == 0 else {})
    )


def share_beat(group: str, member: str, epoch: int) -> ShareGroupHeartbeatRequest:
    topics = (group,) if epoch == 0 else None
    return ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
    )


@pytest.mark.parametrize("beat", [consumer_beat, share_beat])
def test_all_first_members_of_a_new_group_are_members(
    broker: ottla.Broker, clients: list[RawClient], name: str, beat: Any
) -> None:
    create_topic(clients[0], name, partitions=len(MEMBERS))
    joined = ask_together(broker, clients, [beat(name, member, 0) for member in MEMBERS])
    assert [answer.error_code for answer in joined] == [ErrorCode.NONE] * len(MEMBERS)

    beats = [
        client.ask(beat(name, member, answer.member_epoch))
        for client, member, answer in zip(clients, MEMBERS, joined, strict=True)
    ]

    assert [answer.error_code for answer in beats] == [ErrorCode.NONE] * len(MEMBERS)


def test_all_first_members_of_a_new_classic_group_are_members(
    broker: ottla.Broker, clients: list[RawClient], name: str
) -> None:
    def join(member_id: str = "") -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=name,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )

    first = ask_together(broker, clients, [join() for _ in clients])
    assert [answer.error_code for answer in first] == [ErrorCode.MEMBER_ID_REQUIRED] * len(MEMBERS)
    alone, *others = send_together(broker, clients, [join(answer.member_id) for answer in first])
    assert clients[0].receive(alone).generation_id == 1
    again = clients[0].send(join(first[0].member_id))

    joined = [client.receive(sent) for client, sent in zip(clients, (again, *others), strict=True)]

    assert [(answer.error_code, answer.generation_id) for answer in joined] == [(ErrorCode.NONE, 2)] * len(MEMBERS)
    [leader] = [answer for answer in joined if answer.members]
    assert {member.member_id for member in leader.members} == {answer.member_id for answer in first}
