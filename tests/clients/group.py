"""Several members of one consumer group, each in a separate thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ottla.core.ids import TopicPartition

from .adapters.base import PATIENCE_S, Committed, ConsumerOptions, Refused, by_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from .adapters.base import Client, Received


class Member:
    """Polls and commits until told to leave."""

    def __init__(self, group: Group, client: Client, options: ConsumerOptions) -> None:
        self.assignment: set[TopicPartition] = set()
        self.error: Exception | None = None
        self._group = group
        self._is_leaving = False
        self._poll_s = client.idle_poll_s
        self.consumer = client.consumer(group.servers, options)
        self.consumer.subscribe(group.topic)
        self._thread = threading.Thread(target=self._run, name="member")
        self._thread.start()

    def leave(self) -> None:
        self._is_leaving = True
        self._thread.join()
        self.consumer.close()

    def _run(self) -> None:
        try:
            while not self._is_leaving:
                accepted = self._step()
                with self._group.changed:
                    self._group.received += accepted
                    self.assignment = self.consumer.assignment()
                    self._group.changed.notify_all()
        except Exception as error:  # noqa: BLE001 - raised again where the test waits
            with self._group.changed:
                self.error = error
                self._group.changed.notify_all()

    def _step(self) -> list[Received]:
        accepted: list[Received] = []
        for at, records in by_partition(self.consumer.poll(self._poll_s)).items():
            try:
                self.consumer.commit({at: Committed(records[-1].offset + 1)})
            except Refused:
                # Its partitions are being reassigned; the next owner starts at the committed offset.
                if at in self.consumer.assignment():
                    self.consumer.seek(at, records[0].offset)
            else:
                accepted += records
        return accepted


class Group:
    def __init__(self, servers: str, name: str, topic: str, partitions: int) -> None:
        self.servers = servers
        self.topic = topic
        self.members: list[Member] = []
        self.received: list[Received] = []
        """Records received and committed by all members, including former ones."""
        self.changed = threading.Condition()
        self._name = name
        self._partitions = {TopicPartition(topic, index) for index in range(partitions)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in list(self.members):
            self.leave(member)

    def join(
        self,
        client: Client,
        instance: str | None = None,
        *,
        is_cooperative: bool = False,
        follows_broker: bool = False,
    ) -> Member:
        options = ConsumerOptions(
            group=self._name, instance=instance, is_cooperative=is_cooperative, follows_broker=follows_broker
        )
        member = Member(self, client, options)
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        self.members.remove(member)
        member.leave()

    def settle(self) -> None:
        """Wait until every partition has one owner and every member has partitions."""

        def is_settled() -> bool:
            held = [member.assignment for member in self.members]
            return all(held) and sum(map(len, held)) == len(self._partitions) == len(set().union(*held))

        self.until(is_settled, "an assignment of every partition")

    def receive(self, count: int) -> None:
        """Wait until this many records have been received since the beginning."""
        self.until(lambda: len(self.received) >= count, f"{count} records")

    def until(self, claim: Callable[[], bool], what: str) -> None:
        def is_over() -> bool:
            return claim() or any(member.error for member in self.members)

        with self.changed:
            is_in_time = self.changed.wait_for(is_over, PATIENCE_S)
        for member in self.members:
            if member.error is not None:
                raise member.error
        assert is_in_time, f"{what} did not happen; {len(self.received)} records were received"
