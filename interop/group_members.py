"""Members of one consumer group in several clients: Java, librdkafka and Ottla's own."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import confluent_kafka

from interop.kafka_artifacts import KafkaArtifacts
from ottla.client import Client

VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
JAVA_ASSIGNORS: Mapping[str, str] = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
BROKER = "consumer"
"""In place of an assignor: the broker assigns (KIP-848)."""
HEARTBEAT_MS = 100
PATIENCE_S = 60


class MixedGroup:
    """The topic has the group's name."""

    def __init__(self, bootstrap: str, name: str, assignor: str) -> None:
        self.bootstrap = bootstrap
        self.name = name
        self.assignor = assignor
        self.members: list[Member] = []
        self.received: Counter[tuple[int, int]] = Counter()
        """How often each record, by partition and offset, was received by any member."""
        self._changed = asyncio.Event()

    async def join(self, member: "Member") -> "Member":
        self.members.append(member)
        await member.start()
        return member

    async def leave(self, member: "Member") -> None:
        self.members.remove(member)
        await member.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in list(self.members):
            await self.leave(member)

    def tell(self) -> None:
        self._changed.set()

    async def until(self, claim: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not claim():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            held = {type(member).__name__: sorted(member.held) for member in self.members}
            raise AssertionError(f"they hold {held} and got {len(self.received)} records") from None

    async def settle(self, partitions: int) -> None:
        """Wait until every partition has one owner, and the assignment is balanced."""

        def is_settled() -> bool:
            counts = [len(member.held) for member in self.members]
            held = set().union(*(member.held for member in self.members))
            return sum(counts) == len(held) == partitions and max(counts) - min(counts) <= 1

        await self.until(is_settled)


class Member(ABC):
    def __init__(self, group: MixedGroup) -> None:
        self.group = group
        self.held: set[int] = set()

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def stop(self) -> None: ...

    def got(self, partition: int, offsets: range) -> None:
        self.group.received.update((partition, offset) for offset in offsets)
        self.group.tell()


class OttlaMember(Member):
    async def start(self) -> None:
        self._client = Client(self.group.bootstrap)
        await self._client.start()
        assignors: Any = (self.group.assignor,)
        self._consumer = self._client.consumer(
            self.group.name,
            group=self.group.name,
            assignors=assignors,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            for record in await self._consumer.poll(timeout_ms=50):
                self.got(record.partition, range(record.offset, record.offset + 1))
            self.held = {at.partition for at in self._consumer.assignment}
            self.group.tell()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._client.close()


class LibrdkafkaMember(Member):
    async def start(self) -> None:
        settings = {
            "bootstrap.servers": self.group.bootstrap,
            "group.id": self.group.name,
            "auto.offset.reset": "earliest",
            **self._protocol(),
        }
        self._consumer = confluent_kafka.Consumer(settings)
        self._consumer.subscribe([self.group.name])
        self._is_leaving = False
        self._task = asyncio.create_task(self._read())

    def _protocol(self) -> dict[str, Any]:
        if self.group.assignor == BROKER:
            return {"group.protocol": "consumer"}
        return {"partition.assignment.strategy": self.group.assignor, "heartbeat.interval.ms": HEARTBEAT_MS}

    async def _read(self) -> None:
        while not self._is_leaving:
            for message in await asyncio.to_thread(self._consumer.consume, 500, 0.05):
                offset = message.offset()
                assert message.error() is None, message.error()
                assert offset is not None
                self.got(message.partition() or 0, range(offset, offset + 1))
            self.held = {one.partition for one in self._consumer.assignment()}
            self.group.tell()

    async def stop(self) -> None:
        self._is_leaving = True
        await self._task
        await asyncio.to_thread(self._consumer.close)


class JavaMember(Member):
    def __init__(self, group: MixedGroup, kafka: KafkaArtifacts, folder: Path) -> None:
        super().__init__(group)
        self._kafka = kafka
        self._settings = folder / "java-member.properties"
        self._settings.write_text("" if group.assignor == BROKER else f"heartbeat.interval.ms={HEARTBEAT_MS}\n")

    async def start(self) -> None:
        group = self.group
        protocol = ["--group-protocol", "consumer"]
        if group.assignor != BROKER:
            assignor = f"org.apache.kafka.clients.consumer.{JAVA_ASSIGNORS[group.assignor]}"
            protocol = ["--assignment-strategy", assignor]
        options = ["--bootstrap-server", group.bootstrap, "--topic", group.name, "--group-id", group.name]
        more = [
            "--reset-policy",
            "earliest",
            *protocol,
            "--consumer.config",
            str(self._settings),
        ]
        self._process = await asyncio.create_subprocess_exec(
            *self._kafka.command(VERIFIABLE_CONSUMER, [*options, *more], "-Xmx256m"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if line.startswith(b"{"):  # there may be warnings too
                self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        places = {place["partition"] for place in event.get("partitions", ())}
        if event["name"] == "partitions_assigned":
            self.held |= places
        elif event["name"] == "partitions_revoked":
            self.held -= places
        elif event["name"] == "records_consumed":
            for place in event["partitions"]:
                self.got(place["partition"], range(place["minOffset"], place["maxOffset"] + 1))
        self.group.tell()

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
        await self._task
        await self._process.wait()
