"""The same scenarios against a real Apache Kafka broker and Ottla's rules: every response must be the same."""

import select
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.groups.making import environment

from interop.group_plays import PLAYS, PLAYS_AFTER_A_WAIT
from interop.group_stage import INITIAL_DELAY_MS, MAX_SIZE, MIN_SESSION_MS, OTHER_TOPIC, TOPIC, Play
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin
from interop.raw_client import RawClient, wait_for_coordinator
from ottla.groups.actions import Action, Caller, MemberExpired, Persist, PersistOffsets
from ottla.groups.config import GroupConfig
from ottla.groups.coordinator import Coordinator
from ottla.wire.codec import decode_request, decode_response, encode_request, encode_response
from ottla.wire.declare import Request, Response
from ottla.wire.frame import FrameParser
from ottla.wire.header import read_request_header
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_delete import OffsetDeleteRequest
from ottla.wire.messages.sync_group import SyncGroupRequest

KAFKAS_PATIENCE_S = 0.15
HOST = "/127.0.0.1"


class KafkaStage:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._clients: dict[str, RawClient] = {}

    def send(self, who: str, request: Request, version: int) -> None:
        if who not in self._clients:
            self._clients[who] = RawClient(self._bootstrap, who)
        self._clients[who].send(request, version)

    def receive(self, who: str) -> Response:
        return self._clients[who].receive()

    def is_silent(self, who: str) -> bool:
        readable, _, _ = select.select([self._clients[who]], [], [], KAFKAS_PATIENCE_S)
        return not readable

    def wait(self, duration_ms: int) -> None:
        time.sleep(duration_ms / 1000)

    def hang_up(self, who: str) -> None:
        self._clients.pop(who).close()

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


class RulesStage:
    """Frames in and frames out, like a broker, but on a frozen clock."""

    def __init__(self, initial_delay_ms: int) -> None:
        config = GroupConfig(
            min_session_timeout_ms=MIN_SESSION_MS, max_size=MAX_SIZE, initial_rebalance_delay_ms=initial_delay_ms
        )
        self._groups = Coordinator(structs.replace(environment(config), new_uuid=lambda: str(uuid.uuid4())))
        self._now_ms = 0
        self._requests: dict[int, tuple[str, Any, int, memoryview]] = {}
        self._answers: dict[str, deque[Response]] = defaultdict(deque)

    def send(self, who: str, request: Request, version: int) -> None:
        number = len(self._requests)
        frame = _frame(encode_request(request, version, number, who))
        self._requests[number] = who, request, version, frame
        header = read_request_header(frame)
        self._handle(decode_request(header, frame), Caller(number, version, who, HOST))

    def receive(self, who: str) -> Response:
        return self._answers[who].popleft()

    def is_silent(self, who: str) -> bool:
        return not self._answers[who]

    def wait(self, duration_ms: int) -> None:
        until_ms = self._now_ms + duration_ms
        while (next_ms := self._groups.table.next_deadline_ms()) is not None and next_ms <= until_ms:
            self._now_ms = next_ms
            self._carry_out(self._groups.table.expire(next_ms))
        self._now_ms = until_ms

    def hang_up(self, who: str) -> None:
        for number, (sender, request, _, _) in self._requests.items():
            if sender == who:
                self._carry_out(self._groups.forget(request.group_id, number, self._now_ms))

    def _handle(self, request: Request, caller: Caller) -> None:
        groups, now_ms = self._groups, self._now_ms
        match request:
            case JoinGroupRequest():
                self._carry_out(groups.join(request, caller, now_ms))
            case SyncGroupRequest():
                self._carry_out(groups.sync(request, caller.token, now_ms))
            case LeaveGroupRequest():
                self._carry_out(groups.leave(request, caller, now_ms))
            case HeartbeatRequest():
                self._answer(caller.token, HeartbeatResponse(error_code=groups.heartbeat(request, now_ms)))
            case OffsetCommitRequest():
                response, actions = groups.offsets.commit(request, caller.version, now_ms)
                self._carry_out(actions)
                self._answer(caller.token, response)
            case OffsetDeleteRequest():
                deleted, actions = groups.offsets.delete(request)
                self._carry_out(actions)
                self._answer(caller.token, deleted)
            case DescribeGroupsRequest():
                described = tuple(groups.describe(each, caller.version) for each in request.groups)
                self._answer(caller.token, DescribeGroupsResponse(groups=described))
            case DeleteGroupsRequest():
                [group_id] = request.groups_names
                error, actions = groups.delete(group_id)
                self._carry_out(actions)
                result = DeletableGroupResult(group_id=group_id, error_code=error)
                self._answer(caller.token, DeleteGroupsResponse(results=(result,)))

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Persist() | PersistOffsets():
                    self._groups.table.apply(action)
                case MemberExpired():
                    pass
                case _:
                    self._answer(action.token, action.response)

    def _answer(self, token: Any, response: Response) -> None:  # noqa: ANN401
        who, request, version, frame = self._requests[token]
        answer = _frame(encode_response(read_request_header(frame), response))
        self._answers[who].append(decode_response(request, version, token, answer))


def _frame(buffers: list[Any]) -> memoryview:
    [frame] = FrameParser().feed(b"".join(buffers))
    return frame


def started(kafka: KafkaArtifacts, folder: Path, initial_delay_ms: int) -> KafkaBroker:
    settings = {
        "group.min.session.timeout.ms": str(MIN_SESSION_MS),
        "group.max.size": str(MAX_SIZE),
        "group.initial.rebalance.delay.ms": str(initial_delay_ms),
    }
    broker = KafkaBroker(kafka, folder, settings)
    broker.start()
    for topic in (TOPIC, OTHER_TOPIC):
        Admin(broker.bootstrap).create(topic, 1)
    with RawClient(broker.bootstrap) as client:
        wait_for_coordinator(client)
    return broker


def perform(act: Callable[[Play], None], broker: KafkaBroker, initial_delay_ms: int) -> None:
    stage = KafkaStage(broker.bootstrap)
    # Another group each time, so that a retry does not find leftovers.
    group_id = f"{act.__name__}-{uuid.uuid4().hex[:8]}"
    kafkas, ottlas = (Play(each, group_id) for each in (stage, RulesStage(initial_delay_ms)))
    try:
        act(kafkas)
        act(ottlas)
    finally:
        stage.close()
    for ottlas_note, kafkas_note in zip(ottlas.notes, kafkas.notes, strict=True):
        assert ottlas_note == kafkas_note


@pytest.fixture(scope="module")
def broker(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    broker = started(kafka, tmp_path_factory.mktemp("rules"), 0)
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def waiting_broker(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """The first members of a group wait for others."""
    broker = started(kafka, tmp_path_factory.mktemp("waiting"), INITIAL_DELAY_MS)
    yield broker
    broker.stop()


@pytest.mark.parametrize("act", PLAYS, ids=lambda act: act.__name__)
def test_ottla_answers_as_kafka_does(act: Callable[[Play], None], broker: KafkaBroker) -> None:
    perform(act, broker, 0)


@pytest.mark.parametrize("act", PLAYS_AFTER_A_WAIT, ids=lambda act: act.__name__)
def test_ottla_answers_as_kafka_does_after_a_wait(act: Callable[[Play], None], waiting_broker: KafkaBroker) -> None:
    perform(act, waiting_broker, INITIAL_DELAY_MS)
