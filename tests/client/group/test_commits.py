"""Which commits of a member are sent, sent again, or refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.client.running import run

from ottla.client.config import ConsumerConfig
from ottla.client.errors import BrokerError, CommitFailed, broker_error
from ottla.client.group.assignors.known import assignors_named
from ottla.client.group.commits import Commits
from ottla.client.group.interface import Committed
from ottla.client.group.state import MemberState
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Coordinator:
    """Answers each commit with the next item of `answers`; a callable there runs in between."""

    timeout_s = 0.01

    def __init__(self) -> None:
        self.answers: list[ErrorCode | Callable[[], None]] = []
        self.taken: list[tuple[int, dict[TopicPartition, int]]] = []

    async def commit(self, offsets: Mapping[TopicPartition, Committed], identity: Callable[[], Any]) -> None:
        if not offsets:
            return
        who = identity()
        while self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, ErrorCode):
                raise broker_error(answer, "commit")
            answer()
        self.taken.append((who.generation, {at: one.offset for at, one in offsets.items()}))


class Scene:
    def __init__(self, *, auto_commit: bool = True) -> None:
        config = ConsumerConfig(group="g", assignors=("cooperative-sticky",), auto_commit=auto_commit)
        self.state = MemberState(config, assignors_named(config.assignors))
        self.coordinator = Coordinator()
        self.reached: dict[TopicPartition, Committed] = {}
        self.joined = asyncio.Event()
        self.joined.set()
        self.commits = Commits(self.coordinator, self.state, config, lambda: self.reached, self.joined)  # type: ignore[arg-type]
        self.enter(1, P0)

    def enter(self, generation: int, *owned: TopicPartition) -> None:
        self.state.generation = generation
        self.state.gave_up(self.state.owned.difference(owned))
        self.state.took(set(owned) - self.state.owned)


def test_a_commit_carries_the_generation_it_is_made_in() -> None:
    async def scenario() -> None:
        scene = Scene()
        await scene.commits.commit({P0: Committed(5)})
        assert scene.coordinator.taken == [(1, {P0: 5})]

    run(scenario())


def test_a_commit_for_an_unowned_partition_is_refused_and_not_sent() -> None:
    async def scenario() -> None:
        scene = Scene()
        with pytest.raises(CommitFailed, match="t-1, which this member does not own"):
            await scene.commits.commit({P0: Committed(5), P1: Committed(5)})
        scene.state.lose(forgets_id=True)
        with pytest.raises(CommitFailed, match="not a member of group 'g'"):
            await scene.commits.commit({P0: Committed(5)})
        assert scene.coordinator.taken == []

    run(scenario())


def test_a_commit_overtaken_by_a_rebalance_is_resent_in_the_new_generation() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.coordinator.answers = [lambda: scene.enter(2, P0), ErrorCode.ILLEGAL_GENERATION]
        await scene.commits.commit({P0: Committed(5)})
        assert scene.coordinator.taken == [(2, {P0: 5})]

    run(scenario())


def test_a_commit_waits_for_a_join_in_progress() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.joined.clear()
        scene.coordinator.answers = [ErrorCode.ILLEGAL_GENERATION]

        def end_join() -> None:
            scene.enter(2, P0)
            scene.joined.set()

        asyncio.get_running_loop().call_soon(end_join)
        await scene.commits.commit({P0: Committed(5)})
        assert scene.coordinator.taken == [(2, {P0: 5})]

    run(scenario())


def test_a_commit_does_not_wait_forever_for_a_join() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.joined.clear()
        scene.coordinator.answers = [ErrorCode.ILLEGAL_GENERATION]
        with pytest.raises(CommitFailed, match="ILLEGAL_GENERATION"):
            await scene.commits.commit({P0: Committed(5)})

    run(scenario())


def test_a_commit_is_not_resent_for_a_partition_lost_in_between() -> None:
    async def scenario() -> None:
        scene = Scene()

        def lose_it_and_get_it_back() -> None:
            scene.enter(2)
            scene.enter(3, P0)

        scene.coordinator.answers = [lose_it_and_get_it_back, ErrorCode.ILLEGAL_GENERATION]
        with pytest.raises(CommitFailed, match="t-0, which this member does not own"):
            await scene.commits.commit({P0: Committed(5)})
        assert scene.coordinator.taken == []

    run(scenario())


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_commit_that_the_group_refuses_fails(code: ErrorCode) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.coordinator.answers = [code]
        with pytest.raises(CommitFailed, match=code.name):
            await scene.commits.commit({P0: Committed(5)})

    run(scenario())


def test_other_errors_are_raised_to_the_caller() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.coordinator.answers = [ErrorCode.OFFSET_METADATA_TOO_LARGE]
        with pytest.raises(BrokerError, match="OFFSET_METADATA_TOO_LARGE"):
            await scene.commits.commit({P0: Committed(5, metadata="x" * 9999)})

    run(scenario())


def test_requested_positions_are_committed_once() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.enter(1, P0, P1)
        scene.reached = {P0: Committed(3), P1: Committed(4)}
        await scene.commits.commit_positions([P0])
        await scene.commits.commit_positions([P0, P1])
        await scene.commits.commit_positions([P0, P1])
        assert scene.coordinator.taken == [(1, {P0: 3}), (1, {P1: 4})]

    run(scenario())


def test_a_position_is_committed_again_after_the_partition_was_lost() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.reached = {P0: Committed(3)}
        await scene.commits.commit_positions([P0])
        scene.enter(2)
        scene.enter(3, P0)
        await scene.commits.commit_positions([P0])
        assert scene.coordinator.taken == [(1, {P0: 3}), (3, {P0: 3})]

    run(scenario())


def test_a_failed_automatic_commit_is_logged_and_retried_at_the_next_interval(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.reached = {P0: Committed(3)}
        scene.coordinator.answers = [ErrorCode.UNKNOWN_MEMBER_ID]
        await scene.commits.commit_positions([P0])
        assert scene.coordinator.taken == []
        await scene.commits.commit_positions([P0])
        assert scene.coordinator.taken == [(1, {P0: 3})]

    run(scenario())
    assert "automatic commit for group 'g' failed" in caplog.text


def test_nothing_is_committed_automatically_unless_enabled() -> None:
    async def scenario() -> None:
        scene = Scene(auto_commit=False)
        scene.reached = {P0: Committed(3)}
        await scene.commits.commit_positions([P0])
        assert scene.coordinator.taken == []

    run(scenario())
