"""Whatever comes in at the Kafka port is answered or costs one connection, and a client that behaves does not notice."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.core.errors import ErrorCode
from ottla.wire.apis import FETCH, JOIN_GROUP, SYNC_GROUP, Api
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.records.making import forget_peak, peak_bytes

from .making import create_topic, produce, values_in
from .raw_client import HungUpError, RawClient
from .requests import Known, random_frame, served_versions

if TYPE_CHECKING:
    from collections.abc import Iterator

MUTATIONS = 25
MIB = 1 << 20
MAY_WAIT = {FETCH.key, JOIN_GROUP.key, SYNC_GROUP.key}
"""Their answers may lawfully take long."""


class Victim:
    """A broker, and a client that behaves and is served throughout."""

    def __init__(self, broker: ottla.Broker) -> None:
        self.broker = broker
        self.steady = RawClient(broker.bootstrap_servers, "steady")
        ids = tuple(create_topic(self.steady, name, partitions=3) for name in ("steady", "other"))
        self.known = Known(("steady", "other", "group"), ids)
        self._offset = 0

    def must_be_well(self) -> None:
        assert produce(self.steady, "steady", b"steady", partition=2) >= self._offset
        [topic] = self.steady.ask(MetadataRequest(topics=(MetadataRequestTopic(name="steady"),))).topics
        assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 3)
        assert self.broker.broker.listener.counts["failed"] == 0

    def send(self, data: bytes, *, may_wait: bool = False) -> bytes | None:
        """What comes back for these bytes; None if the connection is closed, or if it may wait and does."""
        with RawClient(self.broker.bootstrap_servers, patience_s=0.02 if may_wait else 10) as client:
            try:
                client.send_bytes(data)
                return client.receive_frame()
            except (HungUpError, ConnectionError):
                return None
            except TimeoutError:
                assert may_wait, data.hex()
                return None


@pytest.fixture(scope="module")
def victim(broker: ottla.Broker) -> Iterator[Victim]:
    victim = Victim(broker)
    yield victim
    victim.must_be_well()
    victim.steady.close()


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def mutated(data: bytes, pick: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(pick.randint(1, 3)):
        # Behind the API key and version, so that it is this API's handler that has to cope.
        at = pick.randrange(4, len(changed) + 1)
        match pick.randrange(6):
            case 0:
                changed[at : at + 1] = bytes([pick.choice((0, 1, 0x7F, 0x80, 0xFF, pick.randrange(256)))])
            case 1:
                del changed[at : at + pick.randint(1, 8)]
            case 2:
                changed[at:at] = pick.randbytes(pick.randint(1, 8))
            case 3:
                changed[at : at + 4] = pick.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0"))
            case 4:
                changed[at : at + 2] = pick.choice((b"\xff\xff", b"\x7f\xff", b"\xff\xfe", b"\0\0"))
            case 5:
                del changed[at:]
    return bytes(changed)


@pytest.mark.parametrize(
    ("api", "version"), [pytest.param(*each, id=f"{each[0].name}-v{each[1]}") for each in served_versions()]
)
def test_mutated_requests_are_answered_or_cost_one_connection(victim: Victim, api: Api, version: int) -> None:
    pick = random.Random(f"bad input {api.name} {version}")
    for number in range(MUTATIONS):
        whole = random_frame(api, version, pick, victim.known)
        # Some are left whole: they are strange enough.
        sent = mutated(whole, pick) if number % 5 else whole
        victim.send(framed(sent), may_wait=api.key in MAY_WAIT or True)
        assert victim.broker.broker.listener.counts["failed"] == 0, sent.hex()
    victim.must_be_well()
