"""Random operations of a share group with broker kills: settled records are not redelivered, and no others are lost.

SHARE_ROUNDS makes it longer, SHARE_SEED another.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Final

import pytest
from tests.broker.making import create_topic, produce
from tests.broker.raw_client import RawClient
from tests.broker.sharing import ACCEPT, REJECT, RELEASE, ShareMember, produce_delayed, set_group_config
from tests.client.producer.reading import values
from tests.clients.processes import Server

from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS: Final = int(os.environ.get("SHARE_ROUNDS", "2"))
SEED: Final = int(os.environ.get("SHARE_SEED", "1"))
STEPS: Final = 30
PAST_MS: Final = 1000


class Queue:
    """A topic, a share group, and the expected state of each record."""

    def __init__(self, server: Server, pick: random.Random) -> None:
        self._server = server
        self._pick = pick
        self.written = 0
        self.settled: dict[int, int] = {}
        """Offsets whose acknowledgement was answered, and with what they were acknowledged."""
        self.unheard: set[int] = set()
        with RawClient(server.address) as client:
            set_group_config(
                client,
                "g",
                dead_letter_topic="dead",
                share_delivery_count_limit=1000,
                share_auto_offset_reset="earliest",
            )
            self.topic_id = create_topic(client, "t")

    def work(self, steps: int) -> None:
        """Two members take turns until the broker is killed."""
        clients = [RawClient(self._server.address) for _ in range(2)]
        try:
            members = [ShareMember(client, "g", "t", self.topic_id) for client in clients]
            for _ in range(steps):
                self._step(self._pick.choice(members))
        finally:
            for client in clients:
                client.close()

    def _step(self, member: ShareMember) -> None:
        if self._pick.random() < 0.4:
            count = self._pick.randint(1, 8)
            first = produce(member.client, "t", *(b"%d" % (self.written + at) for at in range(count)))
            assert first == self.written
            self.written += count
        elif self._pick.random() < 0.2:
            produce_delayed(member.client, "t", (b"%d" % self.written, PAST_MS))
            self.written += 1
        self.take(member, self._pick.randint(1, 6))

    def take(self, member: ShareMember, most: int, *kinds: int) -> int:
        """Acknowledge some of the acquired records."""
        got = member.fetch(max_records=most)
        assert not self.settled.keys() & set(got.offsets), "settled, and delivered again"
        for offset, value in got.values.items():
            assert value == b"%d" % offset
            kind = self._pick.choice(kinds or (ACCEPT, ACCEPT, RELEASE, REJECT, 0))
            if not kind:
                continue
            self.unheard.add(offset)
            assert member.acknowledge(offset, offset, kind) == ErrorCode.NONE
            self.unheard.discard(offset)
            if kind != RELEASE:
                self.settled[offset] = kind
        return len(got.offsets)

    def kill_while_something_is_acknowledged(self) -> None:
        with RawClient(self._server.address) as client:
            member = ShareMember(client, "g", "t", self.topic_id)
            got = member.fetch(max_records=1)
            if got.offsets:
                self.unheard.update(got.offsets)
                # Without waiting for the response: it may be written or not.
                member.send_fetch(acks=[(got.offsets[0], got.offsets[0], [ACCEPT])], wait_ms=0)
            self._server.restart("kill")


@pytest.mark.timeout(60 + 20 * ROUNDS)
def test_after_kills_settled_records_stay_settled_and_the_rest_is_redelivered(tmp_path: Path) -> None:
    pick = random.Random(SEED)
    with Server(tmp_path / "data") as server:
        queue = Queue(server, pick)
        for _ in range(ROUNDS):
            queue.work(pick.randint(STEPS // 2, STEPS))
            queue.kill_while_something_is_acknowledged()
        with RawClient(server.address) as client:
            member = ShareMember(client, "g", "t", queue.topic_id)
            while queue.take(member, 100, ACCEPT):
                pass
        lost = set(range(queue.written)) - queue.settled.keys() - queue.unheard
        assert not lost, "neither delivered nor settled"
        rejected = {offset for offset, kind in queue.settled.items() if kind == REJECT}
        letters = {int(value or b"") for value in values(server.address, "dead")}
        assert rejected <= letters <= rejected | queue.unheard
        assert len(rejected) > ROUNDS
        assert len(queue.settled) > 10 * ROUNDS
