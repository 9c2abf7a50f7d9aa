"""Any bytes are decoded to a message or a ProtocolError, quickly and with little memory."""

from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from kio_oracle import kio_encode, kio_type, random_entity
from makers import EACH_MAKER, EACH_MESSAGE, MAKERS, decoder

from ottla.core.errors import ProtocolError
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.offset_delete import OffsetDeleteRequest
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.wire.declare import Request, Response

MUTATIONS = 60


def hexed(text: str) -> memoryview:
    return memoryview(bytes.fromhex(text.replace("|", "")))


def outcome(decode: Callable[[memoryview, int], object], data: bytes) -> object:
    """The message, or the error; any other exception fails the test."""
    try:
        return decode(memoryview(data), 0)
    except ProtocolError as refused:
        return str(refused)


def mutated(data: bytes, pick: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(pick.randint(1, 3)):
        at = pick.randrange(len(changed) + 1)
        match pick.randrange(5):
            case 0:
                changed[at : at + 1] = bytes([pick.choice((0, 1, 0x7F, 0x80, 0xFF, pick.randrange(256)))])
            case 1:
                del changed[at : at + pick.randint(1, 8)]
            case 2:
                changed[at:at] = pick.randbytes(pick.randint(1, 8))
            case 3:
                changed[at : at + 4] = pick.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0"))
            case 4:
                del changed[at:]
    return bytes(changed)


@EACH_MESSAGE
def test_mutated_bytes_are_read_or_refused_and_both_makers_agree(
    message: type[Request | Response], version: int
) -> None:
    decoders = [decoder(maker, message, version) for maker in MAKERS]
    pick = random.Random(f"mutated {message.__name__} {version}")
    theirs = kio_type(message.API, message, version)
    for _ in range(MUTATIONS // 10):
        data = kio_encode(random_entity(theirs, pick))
        for _ in range(10):
            broken = mutated(data, pick)
            first, *others = (outcome(decode, broken) for decode in decoders)
            assert all(other == first for other in others), broken.hex()


@EACH_MESSAGE
def test_every_truncation_is_refused(message: type[Request | Response], version: int) -> None:
    pick = random.Random(f"truncated {message.__name__} {version}")
    data = kio_encode(random_entity(kio_type(message.API, message, version), pick))
    for maker in MAKERS:
        decode = decoder(maker, message, version)
        for end in pick.sample(range(len(data)), min(len(data), 40)):
            with pytest.raises(ProtocolError):
                decode(memoryview(data)[:end], 0)


@EACH_MAKER
@pytest.mark.parametrize(
    ("message", "version", "data", "complaint"),
    [
        (HeartbeatRequest, 0, "fffe", "group_id has invalid length -2"),
        (HeartbeatRequest, 0, "ffff", "group_id must not be null"),
        (HeartbeatRequest, 0, "000a 6162", "group_id claims 10 bytes, but only 2 are left"),
        (HeartbeatRequest, 0, "0002 c328 00000000 0000", "is not UTF-8"),
        (HeartbeatRequest, 4, "00", "group_id must not be null"),
        (HeartbeatRequest, 4, "0a 6162", "group_id claims 9 bytes, but only 2 are left"),
        (HeartbeatRequest, 4, "818002" + "00" * 32768, "group_id has 32768 bytes"),
        (HeartbeatRequest, 4, "ffffffffff01", "does not fit 32 bits"),
        (HeartbeatRequest, 4, "ffffffff1f", "does not fit 32 bits"),
        (HeartbeatRequest, 4, "8080", "ends early"),
        (HeartbeatResponse, 0, "0000 00", "1 bytes left after the last field"),
        (HeartbeatRequest, 0, "", "ends early"),
        (MetadataRequest, 1, "fffffffe", "topics has invalid count -2"),
        (MetadataRequest, 0, "ffffffff", "topics must not be null"),
        (MetadataRequest, 1, "7fffffff 0000", "topics claims 2147483647 entries"),
        (MetadataRequest, 9, "ffffffff0f 00", "topics claims 4294967294 entries"),
        (SyncGroupRequest, 0, "0000 00000000 0000 00000001 0000 ffffffff", "assignment must not be null"),
        (
            SyncGroupRequest,
            0,
            "0000 00000000 0000 00000001 0000 80000000",
            "assignment has invalid length -2147483648",
        ),
        (ProduceRequest, 3, "ffff 0001 00000000 00000001 0000 00000001 00000000 7fffffff", "records claims"),
        (ApiVersionsRequest, 3, "0161 01 00", "ends early|claims|left after"),
        (ApiVersionsRequest, 3, "01 01 ffffffff0f", "tagged fields claims 4294967295 entries"),
        (ApiVersionsRequest, 3, "01 01 01 00 ffffffff0f", "tagged field 0 claims 4294967295 bytes"),
    ],
)
def test_broken_bytes_are_refused_with_a_reason(
    maker: Any, message: type[Request | Response], version: int, data: str, complaint: str
) -> None:
    with pytest.raises(ProtocolError, match=complaint) as refused:
        decoder(maker, message, version)(hexed(data), 0)
    assert "varint" in str(refused.value) or f"{message.__name__} v{version}" in str(refused.value)


@EACH_MAKER
def test_what_follows_the_last_field_of_a_request_is_ignored(maker: Any) -> None:
    # As librdkafka 2.16 asks for all topics: with a null of four bytes where one byte is enough.
    everything = decoder(maker, MetadataRequest, 13)(hexed("00000000 01 00 00"), 0)

    assert everything == MetadataRequest(topics=None, allow_auto_topic_creation=False)


@EACH_MAKER
def test_unknown_tagged_fields_are_skipped(maker: Any) -> None:
    decode = decoder(maker, ApiVersionsRequest, 3)
    expected = ApiVersionsRequest(client_software_name="a", client_software_version="b")
    assert decode(hexed("0261 0262 00"), 0) == expected
    assert decode(hexed("0261 0262 02 00 03 010203 8501 00"), 0) == expected


@EACH_MAKER
def test_a_tagged_field_must_be_as_long_as_it_claims(maker: Any) -> None:
    no_partitions = "00000001 00000001 00000002 00 00000003 00000004 01 01 01"
    decode = decoder(maker, FetchRequest, 16)
    request = decode(hexed(no_partitions + "01 00 03 036162"), 0)
    assert isinstance(request, FetchRequest)
    assert request.cluster_id == "ab"
    for claimed in ("02 036162", "04 036162 00"):
        with pytest.raises(ProtocolError, match="tagged field cluster_id claims"):
            decode(hexed(no_partitions + "01 00" + claimed), 0)


@EACH_MAKER
def test_a_nullable_struct_says_whether_it_is_there(maker: Any) -> None:
    decode = decoder(maker, DescribeTopicPartitionsRequest, 0)
    absent = decode(hexed("01 00000007 ff 00"), 0)
    assert isinstance(absent, DescribeTopicPartitionsRequest)
    assert absent.cursor is None
    with pytest.raises(ProtocolError, match="ends early"):
        decode(hexed("01 00000007 01"), 0)


@EACH_MAKER
def test_a_request_of_more_entries_than_there_is_room_for_is_refused(maker: Any) -> None:
    decode = decoder(maker, LeaveGroupRequest, 5, room=10)
    decode(hexed("01 0b" + "01 00 00 00" * 10 + "00"), 0)
    with pytest.raises(ProtocolError, match="members claims 11 entries"):
        decode(hexed("01 0c" + "01 00 00 00" * 11 + "00"), 0)


@EACH_MAKER
def test_entries_of_nested_arrays_and_tagged_fields_share_the_room(maker: Any) -> None:
    topic = "0000 00000003 00000001 00000002 00000003"
    decode = decoder(maker, OffsetDeleteRequest, 0, room=10)
    decode(hexed("0000 00000002" + topic * 2), 0)
    with pytest.raises(ProtocolError, match="partitions claims 3 entries"):
        decode(hexed("0000 00000003" + topic * 3), 0)
    tagged = decoder(maker, ApiVersionsRequest, 3, room=10)
    with pytest.raises(ProtocolError, match="tagged fields claims 11 entries"):
        tagged(hexed("01 01 0b" + "0900" * 11), 0)


@EACH_MAKER
def test_a_refused_count_allocates_nothing(maker: Any) -> None:
    decode = decoder(maker, MetadataRequest, 1, room=2**40)
    data = memoryview(b"\x0f\xff\xff\xff" + bytes(1000))
    tracemalloc.start()
    try:
        assert "claims 268435455 entries" in str(outcome(decode, data.tobytes()))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
