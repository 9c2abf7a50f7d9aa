"""A DMQP client: pushes to the shards of a topic round-robin, pops in sequence id order.

with Client("127.0.0.1:8080") as client:
    client.create_topic("jobs", shards=2)
    client.push("jobs", b"first")
    message = client.pop("jobs")
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.ids import Address
from ottla.dmqp.errors import DmqpError, InvalidSequence, MessageTooLarge, NotReached, Refused
from ottla.dmqp.frame import MAX_PAYLOAD_BYTES, SEQUENCE_MASK, Method, Status
from ottla.dmqp.merging import Heads
from ottla.dmqp.rest import Rest
from ottla.dmqp.shard_link import ShardLink

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable
    from typing import Self

    from ottla.dmqp.frame import Frame

_TIMEOUT_S: Final = 30.0
_RENEW_SHARE: Final = 1 / 3
"""Fraction of a lease after which it is renewed with the next pop."""


class Message(NamedTuple):
    data: bytes
    sequence_id: int
    shard: int


class _Topic:
    def __init__(self, links: list[ShardLink]) -> None:
        self.links = links
        self.next_push = 0
        self.mine: list[int] = []
        self.renew_at_s = 0.0
        self.heads = Heads()


class Client:
    """Thread-safe; calls are serialized."""

    def __init__(
        self,
        bootstrap: str,
        *,
        consumer: str | None = None,
        timeout_s: float = _TIMEOUT_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`bootstrap` is the HTTP address of a broker; `tls` is for shards and https."""
        self.consumer = consumer or f"consumer-{uuid.uuid4()}"
        self._rest = Rest(bootstrap, timeout_s, tls)
        self._timeout_s = timeout_s
        self._tls = tls
        self._topics: dict[str, _Topic] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the shards, and close all connections."""
        with self._lock:
            for name, topic in self._topics.items():
                for link in topic.links:
                    link.close()
                if topic.mine:
                    try:
                        self._rest.unregister(name, self.consumer)
                    except DmqpError:
                        continue  # the lease expires
            self._topics.clear()

    # Topics

    def create_topic(self, name: str, shards: int = 1, replication_factor: int = 1) -> None:
        """Create a topic and expose it."""
        with self._lock:
            self._rest.create_topic(name, shards, replication_factor)
            self._rest.expose(name)

    # Messages

    def push(self, topic: str, data: bytes, sequence_id: int = 0) -> int:
        """Push to the next shard; returns the sequence id. If one is given, it must be the topic's next."""
        if len(data) > MAX_PAYLOAD_BYTES:
            raise MessageTooLarge(f"message of {len(data)} bytes exceeds the maximum of {MAX_PAYLOAD_BYTES}")
        with self._lock:
            found = self._topic(topic)
            shard = found.next_push
            found.next_push = (shard + 1) % len(found.links)
            reply = self._link(topic, found, shard).ask(Method.PUSH, sequence_id & SEQUENCE_MASK, data)
        _check(reply)
        return reply.sequence_id

    def pop(self, topic: str) -> Message | None:
        """Pop the next message of this consumer's shards; None if they are empty."""
        with self._lock:
            found = self._registered(topic)
            # A single shard needs no peek.
            is_single = len(found.mine) == 1
            while (shard := found.mine[0] if is_single else self._lowest(topic, found)) is not None:
                reply = self._link(topic, found, shard).ask(Method.POP)
                found.heads.forget(shard)
                if reply.status != Status.ENODATA:
                    _check(reply)
                    return Message(reply.payload, reply.sequence_id, shard)
                if is_single:
                    break
                # Another consumer was faster: the shard is moving between consumers.
        return None

    def peek(self, topic: str) -> int | None:
        """The sequence id that `pop` would return; None if there is none."""
        with self._lock:
            found = self._registered(topic)
            shard = self._lowest(topic, found)
            return None if shard is None else found.heads.sequence_of(shard)

    def shards(self, topic: str) -> list[int]:
        """The shards of this consumer."""
        with self._lock:
            return list(self._registered(topic).mine)

    # Shards

    def _topic(self, name: str) -> _Topic:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = _Topic(self._links(name))
        return found

    def _links(self, name: str) -> list[ShardLink]:
        shard_map = self._rest.map_of(name)
        if shard_map.is_tls and self._tls is None:
            raise NotReached(f"the shards of {name} use TLS; pass tls= to the client")
        tls = self._tls if shard_map.is_tls else None
        return [ShardLink(Address(one.host, one.port), self._timeout_s, tls) for one in shard_map.shards]

    def _link(self, name: str, topic: _Topic, shard: int) -> ShardLink:
        """A connected shard. If it has moved, at its new address: nothing has been sent yet."""
        try:
            topic.links[shard].connect()
        except NotReached:
            links = self._links(name)
            if shard >= len(links) or links[shard].address == topic.links[shard].address:
                raise
            topic.links = links
            links[shard].connect()
        return topic.links[shard]

    def _registered(self, name: str) -> _Topic:
        """Registered as a consumer; its shards are reassigned if the lease is not renewed in time."""
        topic = self._topic(name)
        now_s = time.monotonic()
        if now_s >= topic.renew_at_s:
            lease = self._rest.register(name, self.consumer)
            topic.renew_at_s = now_s + _RENEW_SHARE * lease.lease_ms / 1000
            if lease.shards != topic.mine:
                topic.mine = [shard for shard in lease.shards if shard < len(topic.links)]
                topic.heads = Heads()
        if not topic.mine:
            raise Refused(f"no shard of {name} is available for consumer {self.consumer}")
        return topic

    def _lowest(self, name: str, topic: _Topic) -> int | None:
        def peek(shards: Iterable[int]) -> dict[int, int]:
            asked = {shard: self._link(name, topic, shard) for shard in shards}
            for link in asked.values():
                link.send(Method.PEEK_SEQUENCE_ID)
            replies = {shard: link.receive() for shard, link in asked.items()}
            for reply in replies.values():
                if reply.status != Status.ENODATA:
                    _check(reply)
            return {shard: reply.sequence_id for shard, reply in replies.items() if reply.status == Status.OK}

        return topic.heads.lowest(topic.mine, peek)


def _check(reply: Frame) -> None:
    if reply.status == Status.OK:
        return
    if reply.status == Status.EINVAL:
        raise InvalidSequence("not the next sequence id of the topic")
    if reply.status == Status.EMSGSIZE:
        raise MessageTooLarge(f"message {reply.sequence_id} is larger than {MAX_PAYLOAD_BYTES} bytes")
    raise Refused(f"the shard returned errno {reply.status}")
